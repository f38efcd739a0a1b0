"""The price lists: integers in micro-units of the currency (1 USD = 1 000 000), and the one rounding rule.

A list holds from the begin of a month on, and earlier ones stay on record: a month is billed by the list of its begin,
whenever it is closed. To change a price, add a list.

A price is "`unit_price_micros` for `price_quantity` units", so that amounts are exact rationals until each line is
rounded once, half up. A group's reservation is priced by the resources that its SLA takes on the fleet: Filo's cost
vector, summed over the replicas and rounded up per resource. The price is fixed when the group is created or resized.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from quorate_api.coordinator.schemas import ResourceDemand

CURRENCY = "USD"
HOUR_S = 3_600
HOURS_PER_MONTH = 730
MONTH_S = HOURS_PER_MONTH * HOUR_S


@dataclass(frozen=True, slots=True)
class ResourcePrice:
    """The price of a resource held for an hour."""

    resource: str
    attribute: str
    unit: str
    units: int  # units of the demand vector in one `unit`
    hourly_micros: int


@dataclass(frozen=True)
class UsagePrice:
    kind: str
    label: str
    unit: str
    price_quantity: int
    price_quantity_label: str
    unit_price_micros: int

    @cached_property
    def description(self) -> str:
        """On an invoice."""
        return f"{self.label}, per {self.price_quantity_label}"


@dataclass(frozen=True, slots=True)
class PriceList:
    valid_from: datetime
    resources: tuple[ResourcePrice, ...]
    usage: tuple[UsagePrice, ...]
    guarantee_hourly_micros: int  # a million shared tokens/s: of each resource that they may be used for, the dearest
    commitments: tuple[tuple[int, int], ...]  # months, and percent off the reservations committed to


APPENDS, READS, EGRESS, STORAGE = KINDS = ("appends", "reads", "egress", "storage")

# Oldest first.
LISTS = (
    PriceList(
        datetime(2026, 1, 1, tzinfo=UTC),
        (
            ResourcePrice("cpu", "cpu", "core", 1, 80_000),
            ResourcePrice("network", "network_bytes_per_s", "MB/s", 1_000_000, 500),
            ResourcePrice("storage_io", "storage_io_per_s", "1000 operations/s", 1_000, 1_200),
        ),
        (
            UsagePrice(APPENDS, "Appended entries", "entry", 1_000_000, "million entries", 150_000),
            UsagePrice(READS, "Read entries", "entry", 1_000_000, "million entries", 20_000),
            UsagePrice(EGRESS, "Read bytes", "byte", 1_000_000_000, "GB", 50_000),
            UsagePrice(STORAGE, "Storage", "megabyte_second", 1_000 * MONTH_S, "GB-month", 120_000),
        ),
        150_000,
        ((12, 20), (36, 35)),
    ),
)


def at(time: datetime) -> PriceList:
    """The list that holds then. The first one holds for all times before it, too."""
    held = [one for one in LISTS if one.valid_from <= time]
    return held[-1] if held else LISTS[0]


def in_order(lists: Sequence[PriceList]) -> bool:
    """Whether each list begins with a month, after the one before it, and prices all kinds of use."""
    begins = [one.valid_from for one in lists]
    months = all(begin == begin.replace(day=1, hour=0, minute=0, second=0, microsecond=0) for begin in begins)
    kinds = all(tuple(price.kind for price in one.usage) == KINDS for one in lists)
    return months and kinds and all(earlier < later for earlier, later in pairwise(begins))


assert in_order(LISTS)


def hourly_of(price: ResourcePrice, demand: ResourceDemand) -> int:
    """Micro-units for an hour of one resource of `demand`, rounded up."""
    amount = Fraction(getattr(demand, price.attribute)) * price.hourly_micros / price.units
    return -(-amount.numerator // amount.denominator)


def amount_micros(quantity: int, unit_price_micros: int, price_quantity: int) -> int:
    """`quantity · unit_price_micros / price_quantity`, rounded half up. All arguments are at least 0."""
    assert quantity >= 0 <= unit_price_micros, (quantity, unit_price_micros)
    assert price_quantity > 0, price_quantity
    return (2 * quantity * unit_price_micros + price_quantity) // (2 * price_quantity)
