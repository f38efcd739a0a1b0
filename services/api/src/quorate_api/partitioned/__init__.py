"""Rows of groups with partitions. Groups, quotas and the worker read them."""
