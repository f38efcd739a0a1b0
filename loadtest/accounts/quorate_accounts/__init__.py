"""Whether keys, sessions and accounts keep what they promise, on the whole stack."""
