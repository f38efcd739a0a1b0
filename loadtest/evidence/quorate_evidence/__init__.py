"""Does published evidence speak for the present code, and how is it had anew?

`published.py` reads what is published, `status.py` says how old it is, `run.py` measures and publishes again.
"""
