"""`make bench`: what an append costs, by the load driver, on this machine, beside the goals.

`unbudgeted.py` starts servers whose groups' budgets are beyond what can be reached, `cells.py` says what is measured
and what it should be, `seen.py` what peers reached before; `driver.py` runs the load driver, again where it was
disturbed (`quiet.py`), and `verdict.py` makes figures of what it found.
"""
