"""Exit codes of `quorate-api` (docs/internals/processes.md)."""

FAILED, CONFIGURATION, DEPENDENCY, PORT = 1, 2, 3, 4
