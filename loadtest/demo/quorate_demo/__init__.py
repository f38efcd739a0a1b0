"""A real day of traffic through a whole Quorate, a server killed, every entry and the bill checked.

`cli.py` tells the whole story; `replay.py` and `../js/replay.mjs` write, `readback.py` and
`../js/readback.mjs` read back; `verdict.py` judges. `sign_up.py` is for first steps.
"""
