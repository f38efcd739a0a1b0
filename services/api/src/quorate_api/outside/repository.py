"""Probers' minutes. No row belongs to an organization."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.tables import prober_minutes
from quorate_api.outside.verdict import Look, Time, Unreachable, unreachable
from quorate_api.telemetry.windows import DAY_S, HOUR_S

_MINUTES = prober_minutes.c


class OutsideRepository:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, looks: Iterable[Look], now: datetime, late_before_s: int) -> None:
        """Keep these looks, but for those that are known.

        Hours that begin before `late_before_s` may have been judged already: the worker does it again.
        """
        rows = [
            {
                "minute_s": look.minute_s,
                "prober": look.prober,
                "watched": sorted(look.failed),
                "failed": {str(server): times for server, times in look.failed.items() if times},
                "late": look.minute_s // HOUR_S * HOUR_S < late_before_s,
                "received_at": now,
            }
            for look in looks
        ]
        if rows:
            await self._connection.execute(insert(prober_minutes).values(rows).on_conflict_do_nothing())

    async def unreachable(self, spans: Collection[Time]) -> Unreachable:
        """The verdict on times [from, to) in seconds. Minutes in which nothing failed for anybody are not read."""
        if not spans:
            return {}
        within = or_(*(_MINUTES.minute_s.between(from_s, to_s - 1) for from_s, to_s in spans))
        failing = select(_MINUTES.minute_s).where(within, _MINUTES.failed != {})
        rows = await self._connection.execute(select(prober_minutes).where(_MINUTES.minute_s.in_(failing)))
        return unreachable(_look(row) for row in rows.all())

    async def take_late(self) -> dict[int, set[int]]:
        """Hours about which something came late: their begins, and the servers that failed for somebody in them.

        Each is returned once.
        """
        late = update(prober_minutes).where(_MINUTES.late).values(late=False).returning(_MINUTES.minute_s)
        hours = {row[0] // HOUR_S * HOUR_S for row in (await self._connection.execute(late)).all()}
        found: dict[int, set[int]] = defaultdict(set)
        for hour_s in hours:
            of_hour = _MINUTES.minute_s.between(hour_s, hour_s + HOUR_S - 1)
            rows = await self._connection.execute(select(_MINUTES.failed).where(of_hour, _MINUTES.failed != {}))
            found[hour_s] = {int(server) for row in rows.all() for server in row[0]}
        return {hour_s: servers for hour_s, servers in found.items() if servers}

    async def forget(self, day_s: int) -> None:
        """Remove what was seen until the end of a day."""
        await self._connection.execute(delete(prober_minutes).where(_MINUTES.minute_s < day_s + DAY_S))


def _look(row: Any) -> Look:
    failed = {server: [tuple(time) for time in row.failed.get(str(server), [])] for server in row.watched}
    return Look(row.prober, row.minute_s, failed)
