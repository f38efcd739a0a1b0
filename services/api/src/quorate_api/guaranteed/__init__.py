"""Guarantees of projects as they were given over time."""
