"""The rows of a document, wrapped and divided into pages. Pure: lengths are points, downwards."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from quorate_api.documents import typeface
from quorate_api.documents.document import Document, DocumentLine, by_group
from quorate_api.documents.quantities import quantity_text, unit_price_text

# A4, and the right edges of the columns of numbers.
PAGE_WIDTH, PAGE_HEIGHT = 595.28, 841.89
LEFT, RIGHT = 50.0, 545.28
QUANTITY_RIGHT, PRICE_RIGHT = 335.0, 452.0
DESCRIPTION_WIDTH = 190.0
NAME_WIDTH = 380.0
TEXT = 9.0
LEADING = 12.0
BOTTOM = 778.0  # the last row ends above it; the foot is below
LATER_TOP = 96.0  # rows begin here on later pages
GROUP_SPACE = 13.0  # above a group's name
ROW_SPACE = 4.5  # between rows

_NUMBER_AND_UNIT = re.compile(r"(\d) (%|B|replicas)")  # they stay on one line


@dataclass(frozen=True, slots=True)
class GroupRow:
    names: Sequence[str]
    amount_micros: int
    is_continued: bool = False

    @property
    def height(self) -> float:
        return GROUP_SPACE + len(self.names) * LEADING + ROW_SPACE


@dataclass(frozen=True, slots=True)
class LineRow:
    descriptions: Sequence[str]
    quantity: str
    unit_price: str
    amount_micros: int

    @property
    def height(self) -> float:
        return len(self.descriptions) * LEADING + ROW_SPACE


Row = GroupRow | LineRow
Page = list[Row]


def paginated(document: Document, first_top: float, end_height: float) -> list[Page]:
    """The rows of each page. The last page has room for an end of `end_height`, and may have no rows.

    A group's name is never the last row of a page. A group that goes on says its name again.
    """
    pages: list[Page] = [[]]
    y = first_top
    for head, lines in _groups(document):
        if y + head.height + lines[0].height > BOTTOM:
            pages.append([])
            y = LATER_TOP
        pages[-1].append(head)
        y += head.height
        for line in lines:
            if y + line.height > BOTTOM:
                again = replace(head, is_continued=True)
                pages.append([again])
                y = LATER_TOP + again.height
            pages[-1].append(line)
            y += line.height
    if y + end_height > BOTTOM:
        pages.append([])
    return pages


def _groups(document: Document) -> Iterator[tuple[GroupRow, list[LineRow]]]:
    for group in by_group(document.lines):
        names = typeface.wrapped(typeface.shown(group.name), typeface.STRONG, TEXT, NAME_WIDTH)
        yield GroupRow(names, group.amount_micros), [_line(line) for line in group.lines]


def _line(line: DocumentLine) -> LineRow:
    text = _NUMBER_AND_UNIT.sub("\\1\N{NO-BREAK SPACE}\\2", typeface.shown(line.description))
    descriptions = typeface.wrapped(text, typeface.REGULAR, TEXT, DESCRIPTION_WIDTH)
    return LineRow(descriptions, quantity_text(line), unit_price_text(line), line.amount_micros)
