"""Code that several measurements share; it imports none of them.

`fleet.py` and `unbudgeted.py` start servers, `customer.py` buys groups, `steady.py` puts load on them.
`quiet.py` repeats disturbed windows, `processor.py` reads processor time.
`cells.py` and `peer_baseline.py` say what is measured beside peers, `figures.py` writes what was found.
"""
