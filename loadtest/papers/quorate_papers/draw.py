"""The values that applicants are drawn from (Filo §6.2)."""

SIZES = [64 << power for power in range(10)]
DEGREES = [3, 5, 7]
DURABILITIES = ["in_memory", "persistent"]
