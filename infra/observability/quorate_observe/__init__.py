"""What operators watch a fleet with: metric names, dashboards, alerts, and proof that they fit one another."""
