"""Totals of usage that are final."""
