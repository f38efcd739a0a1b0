"""The figures of Filo (ATC'16), run again through `quorate-planner`."""
