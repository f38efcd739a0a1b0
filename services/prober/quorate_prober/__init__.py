"""Quorate, seen from outside: `docs/operating/probing.md`."""
