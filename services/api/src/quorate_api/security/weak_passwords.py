"""Passwords that guessers try first: known from breaches, or made of this product's name. No I/O.

OWASP ASVS 5.0, 6.2.4, 6.2.11 and 6.2.12.
"""

import re

from zxcvbn.frequency_lists import FREQUENCY_LISTS

KNOWN = frozenset(FREQUENCY_LISTS["passwords"])
CONTEXT = ("quorate",)
SHORT = 4  # so few digits or signs make a known one no better
DIFFERENT_MIN = 4
_DECORATION = re.compile(r"[\W\d_]+")


def weakness(password: str) -> str | None:
    """A sentence for people about the password. None: it is none of these."""
    plain = password.lower()
    if plain in KNOWN:
        return "is among those that are guessed first; choose another one"
    letters = _DECORATION.sub("", plain)
    if letters in CONTEXT or (letters in KNOWN and len(letters) < len(plain) <= len(letters) + SHORT):
        return "is a well-known one with digits or signs; choose another one"
    if len(set(plain)) < DIFFERENT_MIN:
        return "has too few different characters; choose another one"
    return None
