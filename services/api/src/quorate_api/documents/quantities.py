"""Quantities and prices of lines in words, as the portal says them."""

from dataclasses import replace
from fractions import Fraction

from quorate_api.documents.amounts import MINUS, price_text
from quorate_api.documents.document import DocumentLine
from quorate_api.pricing import prices

_PRICE_UNITS = {
    ("second", 1): "second",
    ("second", prices.HOUR_S): "hour",
    ("entry", 1): "entry",
    ("entry", 1_000_000): "million entries",
    ("byte", 1_000_000_000): "GB",
    ("megabyte_second", 1_000 * prices.MONTH_S): "GB-month",
}

_GIGA = {"byte": (1_000_000_000, "GB"), "megabyte_second": (1_000 * prices.MONTH_S, "GB-months")}


def quantity_text(line: DocumentLine) -> str:
    if line.quantity < 0:  # a correction that takes off use
        return MINUS + quantity_text(replace(line, quantity=-line.quantity))
    quantity, unit = line.quantity, line.unit
    if unit == "second":
        return _duration(quantity)
    if unit == "entry":
        return f"{quantity:,} {'entry' if quantity == 1 else 'entries'}"
    if unit in _GIGA:
        units, name = _GIGA[unit]
        return f"{_small(Fraction(quantity, units))} {name}"
    if unit == "percent":
        return f"{quantity} %"
    return f"{quantity:,} {unit}"


def unit_price_text(line: DocumentLine) -> str:
    """`0.15 per million entries`. Credits and discounts have no price."""
    if line.kind in ("sla_credit", "commitment"):
        return ""
    per = _PRICE_UNITS.get((line.unit, line.price_quantity), f"{line.price_quantity:,} {line.unit}")
    return f"{price_text(line.unit_price_micros)} per {per}"


def _duration(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds < prices.HOUR_S
    return f"{_decimal(Fraction(seconds, 60 if minutes else prices.HOUR_S), 2)} {'min' if minutes else 'h'}"


def _small(value: Fraction) -> str:
    """A quantity below the last decimal is shown as "less than", because the amount beside it is exact."""
    return "< 0.0001" if 0 < value < Fraction(1, 10_000) else _decimal(value, 4)


def _decimal(value: Fraction, places: int) -> str:
    """At most so many decimals, rounded half up."""
    scale: int = 10**places
    whole, rest = divmod((2 * value.numerator * scale + value.denominator) // (2 * value.denominator), scale)
    decimals = f"{rest:0{places}d}".rstrip("0")
    return f"{whole:,}.{decimals}" if decimals else f"{whole:,}"
