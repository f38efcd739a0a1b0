"""Real processes under faults and load; their histories go to the checker (docs/internals/chaos.md)."""
