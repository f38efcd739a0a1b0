"""Amounts of money as texts. Amounts are exact to the micro-unit; whole cents appear once, as what is to pay.

The total and each tax line are rounded half up to cents, negative ones as the positive ones that they take back. The
subtotal in cents is the rest, so that a document's cents add up as its exact amounts do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MICROS = 1_000_000
MICROS_PER_CENT = 10_000
MINUS = "−"


@dataclass(frozen=True, slots=True)
class Cents:
    subtotal: int
    taxes: tuple[int, ...]
    total: int


def rounded(micros: int) -> int:
    """Whole cents, rounded half up by size."""
    size = (2 * abs(micros) + MICROS_PER_CENT) // (2 * MICROS_PER_CENT)
    return size if micros >= 0 else -size


def in_cents(total_micros: int, tax_micros: Sequence[int]) -> Cents:
    total, taxes = rounded(total_micros), tuple(rounded(each) for each in tax_micros)
    return Cents(total - sum(taxes), taxes, total)


def cents_text(cents: int) -> str:
    """`1,234.57`."""
    whole, rest = divmod(abs(cents), 100)
    return f"{_sign(cents)}{whole:,}.{rest:02d}"


def exact_parts(micros: int) -> tuple[str, str]:
    """`("1,234.56", "7890")`: up to the cents, and the digits after them. No digit is rounded away."""
    whole, rest = divmod(abs(micros), MICROS)
    decimals = f"{rest:06d}"
    return f"{_sign(micros)}{whole:,}.{decimals[:2]}", decimals[2:]


def price_text(micros: int) -> str:
    """`0.15`, `0.01224`: exact, with at least two decimals."""
    whole, rest = divmod(abs(micros), MICROS)
    decimals = f"{rest:06d}"
    return f"{_sign(micros)}{whole:,}.{decimals[:2]}{decimals[2:].rstrip('0')}"


def plain_text(micros: int) -> str:
    """`-1234.567890`: exact, for programs."""
    whole, rest = divmod(abs(micros), MICROS)
    return f"{'-' if micros < 0 else ''}{whole}.{rest:06d}"


def _sign(amount: int) -> str:
    return MINUS if amount < 0 else ""
