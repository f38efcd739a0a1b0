"""The lines of everything that an organization owes: metered, and on no invoice yet."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.billing import calculator
from quorate_api.billing.calculator import RESERVATION, BilledGroup, Line, Reservation
from quorate_api.billing.repository import BillingRepository
from quorate_api.database.scope import Scope
from quorate_api.groups.periods import periods
from quorate_api.pricing import prices
from quorate_api.totals.repository import TotalsRepository


async def lines_of(
    scope: Scope, start: datetime, at: datetime, usage_until_s: int | None, *, without_closing: bool = False
) -> list[Line]:
    """Lines for everything that is owed by `at` and is on no invoice yet, by the price list of the month's `start`.

    `usage_until_s`: a day's begin; windows before it count. None: all. `without_closing`: but for months that ended
    before `start` and are not closed yet.
    """
    billing = BillingRepository(scope)
    totals = TotalsRepository(scope)
    metered = await totals.metered(usage_until_s)
    before = await totals.metered(int(start.timestamp())) if without_closing else {}
    billed = await billing.billed()
    former = await billing.former_slas()
    price_list = prices.at(start)
    lines: list[Line] = []
    for row in await billing.billable_groups(at):
        done = billed.get(row.id, {})
        if without_closing:
            closing = _quantities(row, start, before)
            done = {kind: max(quantity, done.get(kind, 0)) for kind, quantity in closing.items()}
        had = periods(row, former.get(row.id, []))
        reservations = tuple(
            Reservation(
                None if each.end is None else reserved_seconds(row, each.end), each.hourly_micros, _in_words(each.sla)
            )
            for each in had
        )
        group = BilledGroup(row.id, row.name, reservations)
        lines += calculator.invoice_lines(group, _quantities(row, at, metered), done, price_list)
    return lines


def _quantities(row: Row[Any], at: datetime, metered: Mapping[UUID, tuple[int, int, int]]) -> dict[str, int]:
    """All that the group has used by `at`, by kind."""
    entries, reads, stored = metered.get(row.id, (0, 0, 0))
    return {
        RESERVATION: reserved_seconds(row, at),
        prices.APPENDS: entries,
        prices.READS: reads,
        prices.STORAGE: stored,
    }


def reserved_seconds(group: Row[Any], at: datetime) -> int:
    """Whole seconds from the group's admission until its deletion was requested."""
    if group.active_at is None:
        return 0
    stop = min(at, group.delete_requested_at) if group.delete_requested_at else at
    return max(0, int(stop.timestamp()) - int(group.active_at.timestamp()))


def _in_words(agreed: dict[str, Any]) -> str:
    durability = str(agreed["durability"]).replace("_", "-")
    return (
        f"{agreed['rate_per_s']:,} appends/s of {agreed['request_size_bytes']:,} B, {durability}, "
        f"{agreed['replication_degree']} replicas"
    )
