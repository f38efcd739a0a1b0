"""Lines of what organizations owe by a time: the one source of invoices, the open invoice, spend and budgets.

`read` reads, once, what lines are computed from, of one organization or of a batch. The rest is pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Row

from quorate_api.agreed.periods import periods
from quorate_api.billing import calculator
from quorate_api.billing.calculator import COMMITMENT, RESERVATION, BilledGroup, Line, Reservation
from quorate_api.billing.repository import BillingRepository
from quorate_api.commitments import calculator as commitments
from quorate_api.commitments.calculator import Commitment
from quorate_api.commitments.repository import CommitmentRepository
from quorate_api.corrections.correction import UsageCorrection
from quorate_api.corrections.repository import CorrectionRepository
from quorate_api.database.scope import Scope, SomeOrganizations
from quorate_api.guaranteed.calculator import Period
from quorate_api.guaranteed.repository import GuaranteeRepository
from quorate_api.months.calendar import month_end
from quorate_api.months.repository import MonthRepository
from quorate_api.pricing import prices
from quorate_api.totals.days import NOTHING, DailyUse, Metered

Owned = TypeVar("Owned")

Quantities = Mapping[str, int]  # by kind, since the group began
Corrections = Mapping[UUID, Sequence[UsageCorrection]]  # by group, oldest first


@dataclass(frozen=True, slots=True)
class Account:
    """`billed`: quantities on invoices, by group. `closed_until`: the end of each organization's last closed month."""

    groups: list[Row[Any]]
    former: Mapping[UUID, list[Row[Any]]]
    billed: Mapping[UUID, Quantities]
    closed_until: Mapping[UUID, datetime]
    corrections: Corrections = field(default_factory=dict)
    commitments: Mapping[UUID, Sequence[Commitment]] = field(default_factory=dict)  # by organization
    guarantees: Mapping[UUID, Sequence[Period]] = field(default_factory=dict)  # by organization

    def is_closed(self, organization_id: UUID, start: datetime) -> bool:
        """Whether the months before `start` are on invoices."""
        closed_until = self.closed_until.get(organization_id)
        return closed_until is not None and closed_until >= start

    def by_organization(self) -> dict[UUID, "Account"]:
        """The account of each organization that has groups, or had a guarantee."""
        groups: dict[UUID, list[Row[Any]]] = {owner: [] for owner in self.guarantees}
        for row in self.groups:
            groups.setdefault(row.organization_id, []).append(row)
        return {
            owner: replace(
                self, groups=own, commitments=_only(owner, self.commitments), guarantees=_only(owner, self.guarantees)
            )
            for owner, own in groups.items()
        }


def _only(owner: UUID, by_organization: Mapping[UUID, Owned]) -> Mapping[UUID, Owned]:
    return {owner: by_organization[owner]} if owner in by_organization else {}


@dataclass(frozen=True, slots=True)
class Basis:
    """The start of a month's lines. `done`: quantities that it does not bill. `corrections`: those on it."""

    done: Mapping[UUID, Quantities]
    corrections: Corrections


async def read(scope: Scope | SomeOrganizations, before: datetime) -> Account:
    """The account, with the groups that were created before."""
    billing = BillingRepository(scope)
    # First: a close that commits meanwhile is then taken for open, which counts its lines as billed all the same.
    closed_until = await MonthRepository(scope).closed_until()
    return Account(
        groups=await billing.billable_groups(before),
        former=await billing.former_slas(),
        billed=await billing.billed(),
        closed_until=closed_until,
        corrections=await CorrectionRepository(scope).usage(),
        commitments=await CommitmentRepository(scope).by_organization(),
        guarantees=await GuaranteeRepository(scope).by_organization(),
    )


def lines_of(account: Account, start: datetime, at: datetime, metered: Metered, basis: Basis) -> list[Line]:
    """Lines for everything that is used by `at` and is not done before, by the price list of the month's `start`."""
    price_list = prices.at(start)
    lines: list[Line] = []
    for row in account.groups:
        reservations = tuple(
            Reservation(
                None if each.end is None else reserved_seconds(row, each.end), each.hourly_micros, _in_words(each.sla)
            )
            for each in periods(row, account.former.get(row.id, []))
        )
        group = BilledGroup(row.id, row.name, reservations)
        corrections = [each for each in basis.corrections.get(row.id, ()) if each.begin < at]
        done = basis.done.get(row.id, {})
        lines += calculator.invoice_lines(group, quantities(row, at, metered), done, price_list, corrections)
    added = [*_guarantee_lines(account, start, at), *_commitment_lines(account, start, at, lines)]
    return _in_groups([*lines, *added]) if added else lines


def _guarantee_lines(account: Account, start: datetime, at: datetime) -> list[Line]:
    """Guarantees in the part of the month that is over by `at`."""
    periods = [period for own in account.guarantees.values() for period in own]
    lines = (calculator.guarantee_line(period, start, at) for period in periods)
    return [line for line in lines if line is not None]


def _commitment_lines(account: Account, start: datetime, at: datetime, lines: Sequence[Line]) -> list[Line]:
    """Discounts and what is not reserved, of the part of the month that is over by `at`."""
    if not account.commitments:
        return []
    rows = {row.id: row for row in account.groups}
    month_s = int((month_end(start) - start).total_seconds())
    part = (min(month_s, max(0, int((at - start).total_seconds()))), month_s)
    found: list[Line] = []
    for owner, made in account.commitments.items():
        reserved: dict[UUID, int] = {}
        for line in lines:
            if line.kind == RESERVATION and line.group_id is not None and rows[line.group_id].organization_id == owner:
                reserved[line.group_id] = reserved.get(line.group_id, 0) + line.amount_micros
        for share in commitments.shares(made, start, part, reserved):
            name = None if share.group_id is None else rows[share.group_id].name
            found.append(calculator.commitment_line(share, name))
    return found


def _in_groups(lines: Sequence[Line]) -> list[Line]:
    """A group after the other, in their first order, then projects' lines, and the organization's own lines last."""
    order = {line.group_id: number for number, line in reversed(list(enumerate(lines)))}
    return sorted(lines, key=lambda line: (line.group_id is None, order[line.group_id], line.kind == COMMITMENT))


def open_lines(account: Account, used: DailyUse, start: datetime, now: datetime) -> list[Line]:
    """Lines of the month that began at `start`, as of now. Months before it are not in it, closed or not."""
    return lines_of(account, start, now, used.before(None), open_basis(account, used, start))


def open_basis(account: Account, used: DailyUse, start: datetime) -> Basis:
    """The basis of a month from `start` on that is not closed."""
    return Basis(_done_before(account, used, start), corrections_of_invoice(account, start))


def closed_basis(account: Account, used: DailyUse, start: datetime) -> Basis:
    """The basis of a month as it was used, whichever documents bill it."""
    corrections = {
        group_id: [each for each in found if each.month == start] for group_id, found in account.corrections.items()
    }
    return Basis(closing(account, used, start), corrections)


def corrections_of_invoice(account: Account, start: datetime) -> dict[UUID, list[UsageCorrection]]:
    """Corrections that the invoice of the month from `start` on has once it is issued, by group.

    A correction that raises the use of a closed month comes with the next invoice, as late usage does. One that lowers
    it is on a credit note for that month.
    """
    found: dict[UUID, list[UsageCorrection]] = {}
    for row in account.groups if account.corrections else ():
        closed_until = account.closed_until.get(row.organization_id)
        open_ones = [each for each in account.corrections.get(row.id, ()) if not each.is_billed]
        found[row.id] = [each for each in open_ones if _invoice_of(each, closed_until) == start]
    return found


def _invoice_of(correction: UsageCorrection, closed_until: datetime | None) -> datetime | None:
    """The month on whose invoice the correction will be. None: it is for a credit note."""
    if closed_until is None or correction.month >= closed_until:
        return correction.month
    return closed_until if correction.quantity > 0 else None


def _done_before(account: Account, used: DailyUse, start: datetime) -> dict[UUID, Quantities]:
    """Quantities that a month from `start` on does not bill, by group: those on invoices. Where the months before it
    are not closed yet, those that their invoices will have count too."""
    found: dict[UUID, Quantities] = {}
    earlier: Metered | None = None
    for row in account.groups:
        done = account.billed.get(row.id, {})
        if not account.is_closed(row.organization_id, start):
            earlier = used.before(int(start.timestamp())) if earlier is None else earlier
            closing_then = quantities(row, start, earlier)
            done = {kind: max(quantity, done.get(kind, 0)) for kind, quantity in closing_then.items()}
        found[row.id] = done
    return found


def closing(account: Account, used: DailyUse, at: datetime) -> dict[UUID, Quantities]:
    """Use of each group until `at`, the begin of a day."""
    metered = used.before(int(at.timestamp()))
    return {row.id: quantities(row, at, metered) for row in account.groups}


def quantities(row: Row[Any], at: datetime, metered: Metered) -> dict[str, int]:
    """Use of the group until `at`, by kind."""
    used = metered.get(row.id, NOTHING)
    return {
        RESERVATION: reserved_seconds(row, at),
        prices.APPENDS: used.entries,
        prices.READS: used.reads,
        prices.EGRESS: used.read_bytes,
        prices.STORAGE: used.stored,
    }


def reserved_seconds(group: Row[Any], at: datetime) -> int:
    """Whole seconds from the group's admission until its deletion was requested."""
    if group.active_at is None:
        return 0
    stop = min(at, group.delete_requested_at) if group.delete_requested_at else at
    return max(0, int(stop.timestamp()) - int(group.active_at.timestamp()))


def _in_words(agreed: dict[str, Any]) -> str:
    durability = str(agreed["durability"]).replace("_", "-")
    reads_per_s = agreed.get("read_rate_per_s", 0)
    reads = f" and {reads_per_s:,} reads/s" if reads_per_s else ""
    return (
        f"{agreed['rate_per_s']:,} appends/s{reads} of {agreed['request_size_bytes']:,} B, {durability}, "
        f"{agreed['replication_degree']} replicas"
    )
