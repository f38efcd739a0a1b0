"""A page's marks: texts, amounts, lines. Lengths are points, and y is the distance from the page's top."""

from datetime import datetime
from io import BytesIO

from reportlab.lib.colors import Color, HexColor
from reportlab.pdfgen.canvas import Canvas

from quorate_api.documents import typeface
from quorate_api.documents.amounts import exact_parts
from quorate_api.documents.layout import PAGE_HEIGHT, PAGE_WIDTH, TEXT
from quorate_api.documents.typeface import REGULAR

# The portal's colours (portal/src/styles/tokens.css), in light.
INK, INK_2, INK_3 = HexColor("#191e1c"), HexColor("#4d5753"), HexColor("#646e69")
ACCENT, LINE, WARN = HexColor("#0b6b58"), HexColor("#d9dfdc"), HexColor("#8a4b00")
BELOW_CENTS = 0.82  # size of the digits after the cents


class Sheet:
    def __init__(self, title: str, seller: str, customer: str, made_at: datetime) -> None:
        self._bytes = BytesIO()
        # `invariant`: neither the clock nor chance is in the bytes. The date is the document's own.
        self._canvas = Canvas(
            self._bytes, (PAGE_WIDTH, PAGE_HEIGHT), pageCompression=1, invariant=1, initialFontName=REGULAR, lang="en"
        )
        self._canvas.setDateFormatter(lambda *_now: f"D:{made_at:%Y%m%d%H%M%S}+00'00'")
        self._canvas.setTitle(title)
        self._canvas.setAuthor(seller)
        self._canvas.setSubject(customer)
        self._canvas.setCreator("Quorate")

    def put(self, x: float, y: float, text: str, size: float = TEXT, font: str = REGULAR, ink: Color = INK) -> None:
        self._style(size, font, ink)
        self._canvas.drawString(x, PAGE_HEIGHT - y, text)

    def right(self, x: float, y: float, text: str, size: float = TEXT, font: str = REGULAR, ink: Color = INK) -> None:
        self._style(size, font, ink)
        self._canvas.drawRightString(x, PAGE_HEIGHT - y, text)

    def amount(self, x: float, y: float, micros: int, font: str = REGULAR, ink: Color = INK) -> None:
        """An exact amount that ends at x. Digits after the cents are smaller and paler."""
        cents, rest = exact_parts(micros)
        size = TEXT * BELOW_CENTS
        start = x - typeface.width(rest, REGULAR, size) - typeface.width(cents, font, TEXT)
        # One object, so that a reader's copy of the amount is one word.
        text = self._canvas.beginText(start, PAGE_HEIGHT - y)
        for part, part_font, part_size, part_ink in ((cents, font, TEXT, ink), (rest, REGULAR, size, INK_3)):
            text.setFont(part_font, part_size)
            text.setFillColor(part_ink)
            text.textOut(part)
        self._canvas.drawText(text)

    def rule(self, x: float, y: float, to: float, ink: Color = LINE, width: float = 0.6) -> None:
        self._canvas.setStrokeColor(ink)
        self._canvas.setLineWidth(width)
        self._canvas.line(x, PAGE_HEIGHT - y, to, PAGE_HEIGHT - y)

    def mark(self, x: float, y: float, size: float) -> None:
        """Three replicas in a ring, as the portal's `Mark` has them."""
        unit = size / 32
        self._canvas.setStrokeColor(ACCENT)
        self._canvas.setFillColor(ACCENT)
        self._canvas.setLineWidth(2.5 * unit)
        self._canvas.circle(x + 16 * unit, PAGE_HEIGHT - y - 16 * unit, 10.5 * unit, stroke=1, fill=0)
        for across, down in ((16, 5.5), (6.9, 21.25), (25.1, 21.25)):
            self._canvas.circle(x + across * unit, PAGE_HEIGHT - y - down * unit, 4.5 * unit, stroke=0, fill=1)

    def end_page(self) -> None:
        self._canvas.showPage()

    def finished(self) -> bytes:
        self._canvas.save()
        return self._bytes.getvalue()

    def _style(self, size: float, font: str, ink: Color) -> None:
        self._canvas.setFont(font, size)
        self._canvas.setFillColor(ink)
