"""Usage that was ingested, and what it sums up to by the plainest means."""

import uuid
from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.telemetry.windows import WINDOW_S, Window, merged
from quorate_api.totals.days import DailyUse, Sums
from quorate_api.totals.repository import TotalsRepository
from quorate_api.usage.repository import UsageRepository
from quorate_api.worker.ingest import store_windows
from support.customer import Customer

Metered = dict[uuid.UUID, Sums]


class Usage:
    """Windows that were ingested, and what they sum up to by the plainest means."""

    def __init__(self, engine: AsyncEngine, customers: dict[str, Customer]) -> None:
        self.engine = engine
        self.customers = customers
        self.organizations = {group: uuid.UUID(customer.organization_id) for group, customer in customers.items()}
        self.windows: list[Window] = []

    async def ingest(self, windows: Iterable[Window]) -> None:
        found = list(windows)
        self.windows += found
        async with self.engine.begin() as connection:
            usage = UsageRepository(EveryOrganization(connection, "a test"))
            owners = await usage.owners_of({uuid.UUID(window.group_id) for window in found})
        await store_windows(self.engine, found, owners)

    async def metered(self, customer: Customer, day_s: int | None) -> Metered:
        async with self.engine.begin() as connection:
            return await TotalsRepository(Scope(connection, uuid.UUID(customer.organization_id))).metered(day_s)

    async def before_and_now(self, customer: Customer, day_s: int) -> DailyUse:
        async with self.engine.begin() as connection:
            return await TotalsRepository(Scope(connection, uuid.UUID(customer.organization_id))).before_and_now(day_s)

    async def by_day(self, customer: Customer, from_s: int) -> DailyUse:
        async with self.engine.begin() as connection:
            return await TotalsRepository(Scope(connection, uuid.UUID(customer.organization_id))).by_day(from_s)

    def expected(self, customer: Customer, at_s: int | None) -> Metered:
        logs: dict[str, dict[int, int]] = defaultdict(dict)
        reads: dict[str, int] = defaultdict(int)
        read_bytes: dict[str, int] = defaultdict(int)
        stored: dict[tuple[str, int], int] = defaultdict(int)
        for window in merged(self.windows):
            if str(self.organizations[window.group_id]) != customer.organization_id:
                continue
            if at_s is not None and window.window_start_s >= at_s:
                continue
            of_group = logs[window.group_id]
            of_group[window.log_epoch] = max(of_group.get(window.log_epoch, 0), window.committed_entries)
            minute = (window.group_id, window.window_start_s)
            reads[window.group_id] += window.read_entries
            read_bytes[window.group_id] += window.read_bytes
            stored[minute] = max(stored[minute], window.stored_bytes)
        return {
            uuid.UUID(group): Sums(
                sum(of_group.values()),
                reads[group],
                read_bytes[group],
                sum(size for (one, _), size in stored.items() if one == group) * WINDOW_S // 1_000_000,
            )
            for group, of_group in logs.items()
        }
