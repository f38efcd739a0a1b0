"""Windows of heads, by which the SLA is judged."""
