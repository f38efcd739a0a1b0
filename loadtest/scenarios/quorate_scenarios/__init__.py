"""Loads that resemble real ones, run against a stack of `quorate_local`.

`demo.py` tells the whole story; `replay.py` and `../js/replay.mjs` write, `readback.py` and
`../js/readback.mjs` read back; `verdict.py` judges.
"""
