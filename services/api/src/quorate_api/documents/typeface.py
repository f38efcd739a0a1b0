"""The typeface of documents: Source Sans Pro, embedded, with digits of one width.

It has Latin, Greek, Cyrillic and Vietnamese. A character that it lacks is shown as a box, and the document says where
to read the name in full.
"""

import unicodedata
from functools import cache
from pathlib import Path

import font_source_sans_pro
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

REGULAR, STRONG = "SourceSansPro-Regular", "SourceSansPro-Semibold"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # the typeface has none, so it is a box too


@cache
def load() -> None:
    """Register both weights with the library. Documents are made one at a time (`press.py`)."""
    for name in (REGULAR, STRONG):
        path = Path(font_source_sans_pro.font_directory) / f"{name}.ttf"
        pdfmetrics.registerFont(TTFont(name, str(path)))


def shown(text: str) -> str:
    """The text as it is drawn: composed, in one line, without characters that steer instead of being seen."""
    composed = unicodedata.normalize("NFC", text)
    visible = (REPLACEMENT if _steers(each) else each for each in composed)
    return "".join(" " if each.isspace() else each for each in visible)


def _steers(character: str) -> bool:
    return unicodedata.category(character).startswith("C") and not character.isspace()


def lacks(text: str) -> bool:
    """Whether a character of the text is shown as a box."""
    known = pdfmetrics.getFont(REGULAR).face.charToGlyph
    return any(ord(each) not in known for each in text)


def width(text: str, font: str, size: float) -> float:
    return float(pdfmetrics.stringWidth(text, font, size))


def wrapped(text: str, font: str, size: float, room: float) -> list[str]:
    """The text in lines of at most `room` points. A word that is longer is broken."""
    if width(text, font, size) <= room:
        return [text]
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if width(longer, font, size) <= room:
            lines[-1] = longer
            continue
        lines += _broken(word, font, size, room) if lines[-1] else []
        if not lines[0]:
            lines = _broken(word, font, size, room)
    return lines


def _broken(word: str, font: str, size: float, room: float) -> list[str]:
    pieces = [""]
    for each in word:
        if pieces[-1] and width(pieces[-1] + each, font, size) > room:
            pieces.append("")
        pieces[-1] += each
    return pieces
