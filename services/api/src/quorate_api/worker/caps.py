"""(h) Spend caps: groups are throttled or suspended once their organization's or project's cap is reached.

A pass reads organizations with caps, and those with groups that a former cap limits still. It records which caps act,
and which access each group is to have. Then it asks the coordinator for the accesses that are not as wanted. A cap that
has acted does so until the month is over, or until somebody changes it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from quorate_api import limits
from quorate_api.billing import account as accounts
from quorate_api.caps import outlook
from quorate_api.caps.decision import Cap, access_of, acting, reached_micros
from quorate_api.caps.outlook import HeldBytes, Outlook
from quorate_api.caps.repository import AccessRepository, CapRepository
from quorate_api.caps.service import month_at
from quorate_api.coordinator.client import AnswerOdd, Coordinator, RequestInvalid
from quorate_api.coordinator.schemas import Access
from quorate_api.database.scope import EveryOrganization, SomeOrganizations
from quorate_api.events.catalogue import BudgetCapReached, EventType
from quorate_api.events.repository import EventRepository
from quorate_api.groups.repository import GroupRepository
from quorate_api.months.calendar import SeenMonth, month_name
from quorate_api.totals.days import DailyUse
from quorate_api.totals.repository import TotalsRepository
from quorate_api.worker.halves import Organizations, by_halves

log = structlog.get_logger(__name__)

REASON = "caps of all organizations are watched alike"


@dataclass(slots=True)
class CapWatch:
    """Keeps the last look at each organization, from which growth is told. Several workers may run it at once."""

    engine: AsyncEngine
    coordinator: Coordinator
    _seen: dict[UUID, Outlook] = field(default_factory=dict)

    async def run(self, now: datetime | None = None) -> int:
        """One pass. Returns the number of caps that act from now on."""
        now = now or datetime.now(UTC)
        after: UUID | None = None
        recorded, looked_at = 0, set[UUID]()
        while some := await self._next(after):
            recorded += await by_halves(tuple(some), lambda part: self._watch(part, now), "caps")
            after = some[-1]
            looked_at |= set(some)
        self._seen = {owner: seen for owner, seen in self._seen.items() if owner in looked_at}
        await self._settle()
        return recorded

    async def _next(self, after: UUID | None) -> list[UUID]:
        async with self.engine.begin() as connection:
            access = AccessRepository(EveryOrganization(connection, REASON))
            return await access.organizations(after, limits.CAP_ORGANIZATIONS_MAX)

    async def _watch(self, some: Organizations, now: datetime) -> int:
        async with self.engine.begin() as connection:
            access = AccessRepository(EveryOrganization(connection, REASON))
            caps = CapRepository(SomeOrganizations(connection, some, REASON))
            found, acted = await caps.caps(), set(await caps.acted(month_name(now)))
            unreached = [cap for cap in found if cap.key not in acted]
            reached = await self._reached(connection, unreached, now)
            recorded = await access.record(reached, month_name(now), now)
            await _tell(EventRepository(EveryOrganization(connection, REASON)), recorded, now)
            in_force = acting(found, acted | {cap.key for cap, _ in reached})
            changes = _changes(await caps.going_on(), in_force, await caps.barred())
            for wanted, group_ids in changes.items():
                await access.want(wanted, group_ids)
        for row in recorded:
            log.info("a spend cap acts", budget_id=str(row.budget_id), action=row.action, amount=row.amount_micros)
        return len(recorded)

    async def _reached(self, connection: AsyncConnection, caps: Iterable[Cap], now: datetime) -> list[tuple[Cap, int]]:
        """The reached ones, each with the amount."""
        by_owner: dict[UUID, list[Cap]] = defaultdict(list)
        for cap in caps:
            by_owner[cap.organization_id].append(cap)
        if not by_owner:
            return []
        some = SomeOrganizations(connection, tuple(by_owner), REASON)
        month = month_at(now)
        account = await accounts.read(some, now)
        totals = TotalsRepository(some)
        used = await totals.by_day(int(month.start.timestamp()))
        held = await totals.held_bytes(month.now_s - limits.HELD_BYTES_AGE_S)
        # Other tasks of the worker go on meanwhile.
        looks = await asyncio.to_thread(_looks, account.by_organization(), used, month, held)
        found = []
        for organization_id, look in looks.items():
            before = self._seen.get(organization_id)
            self._seen[organization_id] = look
            for cap in by_owner[organization_id]:
                amount = reached_micros(cap, look.position(cap.owner, before))
                if amount is not None:
                    found.append((cap, amount))
        return found

    async def _settle(self) -> None:
        """Ask the coordinator for accesses that are not as wanted."""
        async with self.engine.begin() as connection:
            unsettled = await AccessRepository(EveryOrganization(connection, REASON)).unsettled(limits.CAP_GROUPS_MAX)
        gate = asyncio.Semaphore(limits.CAP_CALLS_AT_ONCE)

        async def one(row: Row[Any]) -> None:
            async with gate:
                await self._set(row)

        # The first that fails, as the coordinator is away, ends the pass; the others are asked for in the next one.
        await asyncio.gather(*(one(row) for row in unsettled))

    async def _set(self, row: Row[Any]) -> None:
        try:
            view = await self.coordinator.set_access(row.id, row.access_wanted)
        except (AnswerOdd, RequestInvalid) as error:  # this group's fault; the others' caps act all the same
            log.error("access not set", group_id=str(row.id), access=row.access_wanted, error=str(error))
            return
        if view is None:
            log.warning("access not set: the fleet does not know the group", group_id=str(row.id))
            return
        async with self.engine.begin() as connection:
            await GroupRepository(EveryOrganization(connection, REASON)).observe(view, datetime.now(UTC))


async def _tell(events: EventRepository, acting_caps: Iterable[Row[Any]], now: datetime) -> None:
    for row in acting_caps:
        told = BudgetCapReached(**{name: getattr(row, name) for name in BudgetCapReached.model_fields})
        await events.add(row.organization_id, EventType.BUDGET_CAP_REACHED, str(row.id), told, now)


def _looks(
    parts: dict[UUID, accounts.Account], used: DailyUse, month: SeenMonth, held: HeldBytes
) -> dict[UUID, Outlook]:
    found: dict[UUID, Outlook] = {}
    for organization_id, part in parts.items():
        try:
            own = used.of_groups(row.id for row in part.groups)
            found[organization_id] = outlook.look(part, own, month, held)
        except Exception:  # one organization's error does not delay the others' caps
            log.exception("caps not watched", organization_id=str(organization_id))
    return found


def _changes(
    groups: dict[UUID, list[Row[Any]]], in_force: Iterable[Cap], barred: Collection[UUID]
) -> dict[Access, list[UUID]]:
    """Groups that are to have another access than they were to have, by it. `barred`: suspended organizations."""
    caps: dict[UUID, list[Cap]] = defaultdict(list)
    for cap in in_force:
        caps[cap.organization_id].append(cap)
    changes: dict[Access, list[UUID]] = defaultdict(list)
    for organization_id, rows in groups.items():
        for row in rows:
            left = access_of(row.project_id, caps.get(organization_id, ()))
            wanted: Access = "suspended" if organization_id in barred else left
            if wanted != row.access_wanted:
                changes[wanted].append(row.id)
    return changes
