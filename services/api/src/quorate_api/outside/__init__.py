"""The service, seen from outside."""
