"""Quorate's control plane: customers' resources, their usage and their bills."""
