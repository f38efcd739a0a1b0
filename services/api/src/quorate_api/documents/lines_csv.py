"""The lines of a document as CSV (RFC 4180, UTF-8). A tax is a row too, so the amounts add up to the total."""

import csv
import io
from collections.abc import Iterator

from quorate_api.documents.amounts import plain_text
from quorate_api.documents.document import Document
from quorate_api.tax.port import PPM

COLUMNS = (
    "document", "kind", "period_start", "period_end", "issued_at", "customer", "currency", "group_id", "group",
    "line", "description", "quantity", "unit", "price_quantity", "unit_price", "amount",
)  # fmt: skip

# A spreadsheet takes a text that begins with one of these for a formula, and customers choose the names of groups.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render(document: Document) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(_rows(document))
    return text.getvalue().encode()


def _rows(document: Document) -> Iterator[list[object]]:
    issued = document.issued_at
    head = [
        document.number or "",
        document.kind,
        f"{document.period_start:%Y-%m-%d}",
        f"{document.period_end:%Y-%m-%d}",
        "" if issued is None else f"{issued:%Y-%m-%dT%H:%M:%SZ}",
        _text(document.customer.name),
        document.currency,
    ]
    for line in document.lines:
        yield [
            *head, line.group_id or "", _text(line.group_name), line.kind, _text(line.description), line.quantity,
            line.unit, line.price_quantity, plain_text(line.unit_price_micros), plain_text(line.amount_micros),
        ]  # fmt: skip
    for tax in document.taxes:
        yield [
            *head, "", "", "tax", _text(tax.label), tax.rate_ppm, "ppm", PPM, plain_text(tax.base_micros),
            plain_text(tax.amount_micros),
        ]  # fmt: skip


def _text(value: str) -> str:
    return f"'{value}" if value.startswith(_FORMULA) else value
