"""The lists behind `make test`, `make verify`, `make fix` and `make gen`, and what runs them.

`parts.py` lists the parts of the test suite, `checks.py` the checks; add a line there.
"""
