"""SLAs and prices as they were agreed over time."""
