"""A document as PDF: the same bytes for the same document."""

from datetime import datetime, timedelta

from quorate_api import limits
from quorate_api.documents import layout, typeface
from quorate_api.documents.amounts import cents_text, in_cents
from quorate_api.documents.document import Document
from quorate_api.documents.layout import (
    LATER_TOP,
    LEADING,
    LEFT,
    PRICE_RIGHT,
    QUANTITY_RIGHT,
    RIGHT,
    TEXT,
    GroupRow,
    LineRow,
    Page,
)
from quorate_api.documents.sheet import INK, INK_2, INK_3, WARN, Sheet
from quorate_api.documents.typeface import REGULAR, STRONG
from quorate_api.errors import Code, Problem

SMALL, TITLE, TO_PAY = 8.0, 22.0, 14.0
SELLER_LEFT = 345.0
TOTALS_LEFT = 250.0
NOTE_WIDTH = 180.0
TAX_LABEL_WIDTH = 110.0
FOOT = 812.0
TABLE_HEAD = 12.0
NO_SELLER = "The seller's name is not set (QUORATE_SELLER_NAME)"
ROUNDING = (
    "Exact amounts have six decimals. The total and each tax are rounded to whole cents once, half up; "
    "the subtotal in cents is the rest."
)
BOXES = "A box stands for a character that this typeface lacks. The CSV of the lines has every name in full."
DRAFT = "This is a draft and no invoice. The month is not over, and the amounts still grow."


def render(document: Document) -> bytes:
    if len(document.lines) > limits.DOCUMENT_LINES_MAX:
        raise Problem(
            Code.DOCUMENT_TOO_LARGE,
            f"It has {len(document.lines):,} lines, and a PDF has at most {limits.DOCUMENT_LINES_MAX:,}. "
            f"Read all of them as CSV: `GET /v1/invoices/{{id}}/lines.csv`.",
        )
    typeface.load()
    return _Drawing(document).finished()


class _Drawing:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._seller = typeface.shown(document.seller.name) or NO_SELLER
        self._sheet = Sheet(document.title, self._seller, document.customer.name, document.made_at)
        self._notes = self._note_lines()
        self._taxes = [
            typeface.wrapped(typeface.shown(tax.label), REGULAR, TEXT, TAX_LABEL_WIDTH) for tax in document.taxes
        ]

    def finished(self) -> bytes:
        top = self._letterhead()
        pages = layout.paginated(self._document, top, self._end_height())
        for number, page in enumerate(pages, 1):
            y = top if number == 1 else self._later_head(has_rows=bool(page))
            y = self._rows(page, y)
            if number == len(pages):
                self._end(y)
            self._foot(number, len(pages))
            self._sheet.end_page()
        return self._sheet.finished()

    # -- the first page's head --

    def _letterhead(self) -> float:
        sheet, document = self._sheet, self._document
        sheet.mark(LEFT, 46, 21)
        sheet.put(LEFT + 28, 62, "Quorate", 15, STRONG)
        y = self._seller_block(56)
        y = max(y, 96.0) + 38
        sheet.put(LEFT, y, document.title, TITLE, STRONG)
        if document.is_draft:
            y += 17
            sheet.put(LEFT, y, DRAFT, TEXT, REGULAR, WARN)
        return self._table_head(self._facts(y + 30) + 26)

    def _seller_block(self, y: float) -> float:
        seller, room = self._document.seller, RIGHT - SELLER_LEFT
        for each in typeface.wrapped(self._seller, STRONG, TEXT, room):
            self._sheet.put(SELLER_LEFT, y, each, TEXT, STRONG)
            y += LEADING
        tax_id = f"Tax ID {seller.tax_id}" if seller.tax_id else ""
        for text in filter(None, (*seller.address, tax_id)):
            for each in typeface.wrapped(typeface.shown(text), REGULAR, SMALL, room):
                self._sheet.put(SELLER_LEFT, y, each, SMALL, REGULAR, INK_2)
                y += LEADING - 1.5
        return y

    def _facts(self, y: float) -> float:
        """The facts about the document, side by side. Returns the end of the lowest."""
        document = self._document
        facts = [
            ("For", typeface.shown(document.customer.name), LEFT, 185.0),
            ("Period", _period(document.period_start, document.period_end), 250.0, 125.0),
            ("Issued", "Not yet" if document.issued_at is None else _day(document.issued_at), 385.0, 85.0),
        ]
        if document.due_at is not None:
            facts.append(("Due", _day(document.due_at), 470.0, RIGHT - 470.0))
        if document.corrects_number is not None:
            facts.append(("Corrects invoice", document.corrects_number, 470.0, RIGHT - 470.0))
        lowest = y
        for term, value, x, room in facts:
            self._sheet.put(x, y, term, SMALL, REGULAR, INK_3)
            below = y + 1
            for each in typeface.wrapped(value, REGULAR, TEXT + 0.5, room):
                below += LEADING + 0.5
                self._sheet.put(x, below, each, TEXT + 0.5)
            lowest = max(lowest, below)
        return lowest

    # -- every page --

    def _later_head(self, *, has_rows: bool) -> float:
        self._sheet.put(LEFT, 56, self._document.title, TEXT, STRONG)
        self._sheet.right(RIGHT, 56, self._document.currency, SMALL, REGULAR, INK_3)
        return self._table_head(LATER_TOP - TABLE_HEAD) if has_rows else LATER_TOP - TABLE_HEAD

    def _table_head(self, y: float) -> float:
        sheet = self._sheet
        sheet.put(LEFT, y, "Description", SMALL, REGULAR, INK_3)
        for x, text in ((QUANTITY_RIGHT, "Quantity"), (PRICE_RIGHT, f"Unit price, {self._document.currency}"),
                        (RIGHT, f"Amount, {self._document.currency}")):  # fmt: skip
            sheet.right(x, y, text, SMALL, REGULAR, INK_3)
        sheet.rule(LEFT, y + 6, RIGHT)
        return y + TABLE_HEAD

    def _rows(self, page: Page, y: float) -> float:
        for row in page:
            if isinstance(row, GroupRow):
                self._group(row, y + layout.GROUP_SPACE)
            else:
                self._line(row, y)
            y += row.height
        if not self._document.lines:
            self._sheet.put(LEFT, y + layout.GROUP_SPACE, "Nothing to pay yet.", TEXT, REGULAR, INK_2)
            y += layout.GROUP_SPACE + LEADING
        return y

    def _group(self, row: GroupRow, y: float) -> None:
        for number, name in enumerate(row.names):
            self._sheet.put(LEFT, y + number * LEADING, name, TEXT, STRONG)
        if row.is_continued:
            last = row.names[-1]
            x = LEFT + typeface.width(last, STRONG, TEXT) + 5
            self._sheet.put(x, y + (len(row.names) - 1) * LEADING, "continued", SMALL, REGULAR, INK_3)
        else:
            self._sheet.amount(RIGHT, y, row.amount_micros, STRONG)

    def _line(self, row: LineRow, y: float) -> None:
        sheet = self._sheet
        for number, text in enumerate(row.descriptions):
            sheet.put(LEFT, y + number * LEADING, text, TEXT, REGULAR, INK_2)
        sheet.right(QUANTITY_RIGHT, y, row.quantity, TEXT, REGULAR, INK_2)
        sheet.right(PRICE_RIGHT, y, row.unit_price, TEXT, REGULAR, INK_3)
        sheet.amount(RIGHT, y, row.amount_micros, REGULAR, INK_2)

    def _foot(self, number: int, count: int) -> None:
        what = "Draft, no invoice" if self._document.is_draft else self._document.title
        self._sheet.rule(LEFT, FOOT - 14, RIGHT)
        self._sheet.put(LEFT, FOOT, f"{self._seller[:80]} · {what}", SMALL, REGULAR, INK_3)
        self._sheet.right(RIGHT, FOOT, f"Page {number} of {count}", SMALL, REGULAR, INK_3)

    # -- the end --

    def _note_lines(self) -> list[str]:
        document = self._document
        names = [document.customer.name, document.seller.name, *document.seller.address]
        names += [text for line in document.lines for text in (line.group_name, line.description)]
        names += [tax.label for tax in document.taxes]
        notes = [ROUNDING]
        if any(typeface.lacks(typeface.shown(name)) for name in set(names)):
            notes.append(BOXES)
        return [each for note in notes for each in (*typeface.wrapped(note, REGULAR, SMALL, NOTE_WIDTH), "")]

    def _end_height(self) -> float:
        taxes = sum(len(label) * LEADING + 5 for label in self._taxes)
        return 30 + max(62 + taxes, len(self._notes) * (LEADING - 2))

    def _end(self, y: float) -> None:
        """Subtotal, taxes and total, exact and in cents, with notes beside them."""
        sheet, document = self._sheet, self._document
        cents = in_cents(document.total_micros, [tax.amount_micros for tax in document.taxes])
        y += 12
        sheet.rule(LEFT, y, RIGHT)
        y += 18
        for number, note in enumerate(self._notes):
            sheet.put(LEFT, y + number * (LEADING - 2), note, SMALL, REGULAR, INK_3)
        sheet.right(PRICE_RIGHT, y, "Exact", SMALL, REGULAR, INK_3)
        sheet.right(RIGHT, y, "In whole cents", SMALL, REGULAR, INK_3)
        y += 16
        y = self._sum(y, ["Subtotal"], document.subtotal_micros, cents.subtotal)
        for labels, tax, in_whole in zip(self._taxes, document.taxes, cents.taxes, strict=True):
            y = self._sum(y, labels, tax.amount_micros, in_whole)
        sheet.rule(TOTALS_LEFT, y - 6, RIGHT)
        y += 11
        sheet.put(TOTALS_LEFT, y, f"Total {document.currency}", TEXT + 1, STRONG)
        sheet.amount(PRICE_RIGHT, y, document.total_micros, REGULAR, INK_2)
        sheet.right(RIGHT, y, cents_text(cents.total), TO_PAY, STRONG, INK)

    def _sum(self, y: float, labels: list[str], micros: int, cents: int) -> float:
        for number, label in enumerate(labels):
            self._sheet.put(TOTALS_LEFT, y + number * LEADING, label, TEXT, REGULAR, INK_2)
        self._sheet.amount(PRICE_RIGHT, y, micros, REGULAR, INK_2)
        self._sheet.right(RIGHT, y, cents_text(cents), TEXT, REGULAR, INK_2)
        return y + len(labels) * LEADING + 5


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def _period(start: datetime, end: datetime) -> str:
    last = end - timedelta(microseconds=1)
    if (start.year, start.month) == (last.year, last.month):
        return f"{start.day}–{last.day} {start:%B %Y}, UTC"
    return f"{_day(start)} – {_day(last)}, UTC"
