"""Reservations that organizations commit to, for a discount."""
