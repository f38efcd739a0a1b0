"""Operators' view of a fleet: metric names, dashboards, alerts, and proof that they fit one another."""
