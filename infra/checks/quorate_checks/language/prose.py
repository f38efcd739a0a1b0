"""From the text of a comment or a page to its sentences.

Left out: fenced and indented code, tables, HTML comments. Code spans and addresses are masked by one word of the same
length, so that positions stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^\s*(```|~~~)")
_LIST_ITEM = re.compile(r"^(\s*)(?:[-*+•]|\d{1,3}[.)])\s+")
_TAG = re.compile(r"^\s*@\w+(?:\s+\{[^}]*\})?(?:\s+[\w.]+\s+-)?\s*")  # JSDoc's
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+")
_RULE = re.compile(r"^[\s=\-_*~#+.─━|/\\]*$")
_RULED_TITLE = re.compile(r"^\s*[-=─━]{2,}\s*|\s*[-=─━]{3,}\s*$")
_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_ADDRESS = re.compile(r"<?\b(?:https?|file|ftp)://[^\s)>\]]+>?")
_LINK_TARGET = re.compile(r"\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_HTML = re.compile(r"<!--.*?-->|</?[a-zA-Z][^<>]*>", re.DOTALL)
_END = re.compile(r"[.!?…][\"')\]*_”’]*\s+(?=[\"'(\[*_“‘]*[^\W_a-z])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|al|fig|eq|sec|no|approx|resp|ch|pp|vol|incl)|\b[A-Z])\.$", re.IGNORECASE
)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_MASK = "X"


@dataclass(frozen=True)
class Sentence:
    line: int
    text: str
    masked: str  # for the rules
    is_heading: bool = False


@dataclass
class _Block:
    """Lines that belong together: a paragraph, an item, a heading."""

    lines: list[tuple[int, str]]
    is_heading: bool = False


def sentences(lines: list[tuple[int, str]], has_headings: bool = False) -> Iterator[Sentence]:
    """`lines`: numbers and texts of a page or of one comment, in order. Headings are recognised on pages only."""
    for block in _blocks(_without_html(lines), has_headings):
        yield from _of_block(block)


def _without_html(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """HTML comments of several lines become blank."""
    result, is_inside = [], False
    for number, text in lines:
        if is_inside:
            end = text.find("-->")
            is_inside = end < 0
            text = "" if end < 0 else text[end + 3 :]
        begin = text.rfind("<!--")
        if begin >= 0 and "-->" not in text[begin:]:
            is_inside, text = True, text[:begin]
        result.append((number, text))
    return result


def _blocks(lines: list[tuple[int, str]], has_headings: bool) -> Iterator[_Block]:
    block = _Block([])
    fence = ""
    indent = 0  # begin of the list item's text
    was_blank = True
    for number, text in lines:
        marker = _FENCE.match(text)
        if fence or marker:
            yield block
            block = _Block([])
            fence = "" if marker and marker[1] == fence else fence or (marker[1] if marker else "")
            was_blank = True
            continue
        if text.startswith(">"):
            text = text.lstrip("> ")
        item, tag = _LIST_ITEM.match(text), _TAG.match(text)
        is_code = was_blank and text.startswith(" " * (indent + 4)) and not (item and indent)
        if not text.strip() or _RULE.match(text) or text.lstrip().startswith("|") or (is_code and not block.lines):
            yield block
            block = _Block([])
            was_blank = not text.strip() or is_code
            continue
        was_blank = False
        if has_headings and _HEADING.match(text):
            yield block
            yield _Block([(number, _HEADING.sub("", text))], is_heading=True)
            block, indent = _Block([]), 0
            continue
        if item or tag:
            yield block
            block, indent = _Block([]), item.end() if item else 0
            text = text[item.end() :] if item else text[tag.end() if tag else 0 :]
        elif not text.startswith(" ") and not block.lines:
            indent = 0
        block.lines.append((number, _RULED_TITLE.sub("", text)))
    yield block


def _of_block(block: _Block) -> Iterator[Sentence]:
    starts: list[tuple[int, int]] = []  # position in the joined text, line
    joined = ""
    for number, text in block.lines:
        starts.append((len(joined), number))
        joined += text.strip() + " "
    masked = mask(joined)
    for begin, end in _cuts(masked):
        begin += len(masked[begin:end]) - len(masked[begin:end].lstrip())
        if _LETTERS.search(masked[begin:end].replace(_MASK, "")):
            line = max(number for position, number in starts if position <= begin)
            yield Sentence(
                line, joined[begin:end].replace("**", "").strip(" *"), masked[begin:end].rstrip(), block.is_heading
            )


def mask(text: str) -> str:
    """Code spans and addresses as one word each, markup as spaces; the length stays."""
    text = _HTML.sub(lambda found: " " * len(found[0]), text)
    text = _SPAN.sub(lambda found: _MASK * len(found[0]), text)
    text = _LINK_TARGET.sub(lambda found: "]" + " " * (len(found[0]) - 1), text)
    text = _ADDRESS.sub(lambda found: _MASK * len(found[0]), text)
    return text.replace("*", " ")


def _cuts(masked: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for found in _END.finditer(masked):
        if _ABBREVIATION.search(masked[begin : found.start() + 1]):
            continue
        yield begin, found.end()
        begin = found.end()
    yield begin, len(masked)
