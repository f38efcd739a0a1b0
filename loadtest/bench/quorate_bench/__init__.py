"""`make bench`: what an append costs, by the load driver, on this machine, beside the goals.

The harness starts servers whose groups' budgets are beyond what can be reached, and says what is measured and what it
should be. `driver.py` runs the load driver, again where it was disturbed; `verdict.py` makes figures of what it found.
"""
