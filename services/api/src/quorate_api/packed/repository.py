"""Packed hours. The worker packs an hour some time after it was summed up and judged, and unpacks it for late windows.

An hour is packed, or has rows of its own in `usage_windows`, and never both.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import Executable, and_
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import EveryOrganization, hours_sent, rows_of_hours
from quorate_api.database.tables import packed_hours
from quorate_api.packed.format import Packed, pack
from quorate_api.telemetry.windows import DAY_S, HOUR_S, Window

Hour = tuple[UUID, int]  # the group, and the time at which the hour begins

_PACKED = packed_hours.c


class PackedRepository:
    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    @property
    def _connection(self) -> AsyncConnection:
        return self._scope.connection

    async def store(self, windows: Iterable[Window], owners: dict[UUID, UUID]) -> None:
        """Pack hours, of which these are all windows. `owners`: the organization of each group."""
        hours: dict[Hour, list[Window]] = defaultdict(list)
        for window in windows:
            hours[UUID(window.group_id), window.window_start_s // HOUR_S * HOUR_S].append(window)
        if not hours:
            return
        # Other tasks of the worker go on meanwhile.
        rows = await asyncio.to_thread(lambda: [_row(hour, found, owners) for hour, found in sorted(hours.items())])
        await self._connection.execute(self._scope.upsert(packed_hours), rows)

    async def take(self, hours: Collection[Hour]) -> list[Window]:
        """Windows of those hours that are packed, and are no more.

        The caller holds the marks of these hours, so that nobody packs them meanwhile.
        """
        if not hours:
            return []
        due = hours_sent()
        taken = self._scope.delete(packed_hours).where(
            and_(_PACKED.group_id == due.c.group_id, _PACKED.hour_s == due.c.hour_s)
        )
        return await self._unpacked(taken.returning(_PACKED.group_id, _PACKED.windows), rows_of_hours(hours))

    async def of_day(self, day_s: int, group_ids: Collection[UUID]) -> list[Window]:
        """Windows of these groups in the day that begins at `day_s`."""
        statement = self._scope.select(packed_hours, _PACKED.group_id, _PACKED.windows).where(
            _PACKED.hour_s >= day_s, _PACKED.hour_s < day_s + DAY_S, _PACKED.group_id.in_(group_ids)
        )
        return await self._unpacked(statement)

    async def _unpacked(self, statement: Executable, sent: dict[str, Any] | None = None) -> list[Window]:
        rows = (await self._connection.execute(statement, sent)).all()
        return [window for row in rows for window in Packed.of(row.windows).windows(str(row.group_id))]

    async def forget(self, day_s: int) -> None:
        """Remove the hours of a day."""
        of_day = and_(_PACKED.hour_s >= day_s, _PACKED.hour_s < day_s + DAY_S)
        await self._connection.execute(self._scope.delete(packed_hours).where(of_day))


def _row(hour: Hour, windows: list[Window], owners: dict[UUID, UUID]) -> dict[str, Any]:
    group_id, hour_s = hour
    active = [window.window_start_s for window in windows if window.is_head and window.active_ms > 0]
    return {
        "organization_id": owners[group_id],
        "group_id": group_id,
        "hour_s": hour_s,
        "first_active_s": min(active, default=None),
        "last_active_s": max(active, default=None),
        "windows": pack(windows),
    }
