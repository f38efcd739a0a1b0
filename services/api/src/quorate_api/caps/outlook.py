"""The certain cost of a month: all that is owed by now, reservations and kept data until its end. Pure.

A whole month of the same reservations and data may cost more, as the present one has begun already.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from quorate_api.billing import account as accounts
from quorate_api.billing.account import Account
from quorate_api.billing.calculator import COMMITMENT, RESERVATION
from quorate_api.billing.sums import by_group, by_owner
from quorate_api.caps.decision import Owner, Position
from quorate_api.months.calendar import LONGEST_MONTH_S, SeenMonth
from quorate_api.pricing import prices
from quorate_api.totals.days import MEGABYTE_BYTES, NOTHING, DailyUse, Metered

HeldBytes = Mapping[UUID, int]  # bytes that each group keeps, and is charged for


@dataclass(frozen=True, slots=True)
class Outlook:
    """Costs by owner, and the certain cost of each group's use: all but its reservation."""

    at_s: float
    spent: Mapping[Owner, int]
    certain: Mapping[Owner, int]
    whole_month: Mapping[Owner, int]  # the present reservations and data, and nothing else
    usage_by_group: Mapping[UUID, int]
    project_of: Mapping[UUID, UUID]

    def position(self, owner: Owner, before: "Outlook | None" = None) -> Position:
        """`before`: an earlier look, from which use has grown since."""
        spent, certain = self.spent.get(owner, 0), self.certain.get(owner, 0)
        return Position(spent, certain, self._usage_per_s(owner, before))

    def _usage_per_s(self, owner: Owner, before: "Outlook | None") -> float:
        if before is None or self.at_s <= before.at_s:
            return 0.0
        grown = sum(
            max(0, micros - before.usage_by_group[group_id])
            for group_id, micros in self.usage_by_group.items()
            if group_id in before.usage_by_group and owner in (None, self.project_of[group_id])
        )
        return grown / (self.at_s - before.at_s)


def look(account: Account, used: DailyUse, month: SeenMonth, held: HeldBytes) -> Outlook:
    """`used` has each day of the month."""
    basis = accounts.open_basis(account, used, month.start)
    total = used.before(None)
    spent = accounts.lines_of(account, month.start, month.now, total, basis)
    certain = accounts.lines_of(account, month.start, month.end, _kept(account, total, held, month), basis)
    usage = {
        group_id: sum(amount for kind, amount in kinds.items() if kind not in (RESERVATION, COMMITMENT))
        for group_id, kinds in by_group(certain).items()
    }
    project_of = {row.id: row.project_id for row in account.groups}
    # A group without a line yet has used nothing.
    return Outlook(
        month.now.timestamp(),
        by_owner(spent, project_of),
        by_owner(certain, project_of),
        _whole_month(account, held, month),
        dict.fromkeys(project_of, 0) | usage,
        project_of,
    )


def _kept(account: Account, total: Metered, held: HeldBytes, month: SeenMonth) -> Metered:
    """The use of each group at the month's end, if it keeps what it has and nothing else is used."""
    found = dict(total)
    for row in account.groups:
        if row.delete_requested_at is None and row.id in held:
            used = total.get(row.id, NOTHING)
            found[row.id] = used._replace(stored=used.stored + held[row.id] * month.left_s // MEGABYTE_BYTES)
    return found


def _whole_month(account: Account, held: HeldBytes, month: SeenMonth) -> dict[Owner, int]:
    (storage,) = (price for price in prices.at(month.start).usage if price.kind == prices.STORAGE)
    found: dict[Owner, int] = {}
    for row in account.groups:
        if row.delete_requested_at is None:
            kept = held.get(row.id, 0) * LONGEST_MONTH_S // MEGABYTE_BYTES
            micros = prices.amount_micros(LONGEST_MONTH_S, row.hourly_micros, prices.HOUR_S)
            micros += prices.amount_micros(kept, storage.unit_price_micros, storage.price_quantity)
            for owner in (None, row.project_id):
                found[owner] = found.get(owner, 0) + micros
    for period in (period for own in account.guarantees.values() for period in own):
        if period.end is None:
            micros = prices.amount_micros(LONGEST_MONTH_S, period.hourly_micros, prices.HOUR_S)
            for owner in (None, period.project_id):
                found[owner] = found.get(owner, 0) + micros
    return found
