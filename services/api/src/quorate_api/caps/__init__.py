"""Spend caps: budgets that throttle groups to their reservations, or suspend them."""
