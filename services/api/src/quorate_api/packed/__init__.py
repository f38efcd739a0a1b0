"""Hours of usage windows that are over, each packed into one row."""
