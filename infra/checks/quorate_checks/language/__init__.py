"""The language check: how sentences of comments and docs open, and how long they are."""
