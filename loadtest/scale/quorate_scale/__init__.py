"""Metering, reports and bills with many groups and a year of data, on one machine."""
