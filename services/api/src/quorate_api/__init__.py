"""Quorate's control plane: what customers own, what they used, and what they owe."""
