"""The measured claims about consensus: each a command that anyone can run, on real processes.

A file for each claim. `claim.py` says what a claim is.
"""
