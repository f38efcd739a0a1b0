"""Judged hours of groups, and the minutes of them that missed a clause. The worker writes them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, and_, column, func, literal, select, tuple_, union_all, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import ROWS, EveryOrganization, Scope, hours_sent, rows_of_hours, rows_sent
from quorate_api.database.tables import (
    former_slas,
    groups,
    packed_hours,
    sla_bad_minutes,
    sla_days,
    sla_hours,
    sla_region_hours,
    usage_dirty,
    usage_windows,
)
from quorate_api.sla.minutes import Minute
from quorate_api.sla.promise import Promise
from quorate_api.sla.tally import COUNTS, Tally, summed
from quorate_api.telemetry.windows import DAY_S, HOUR_S

Hour = tuple[UUID, int]  # the group, and the time at which the hour begins
RegionHours = dict[tuple[str, int], tuple[int, int]]  # region and hour → minutes, and available minutes

_HOURS, _DAYS, _BAD, _DIRTY, _REGIONS = sla_hours.c, sla_days.c, sla_bad_minutes.c, usage_dirty.c, sla_region_hours.c
_MINUTE = (
    "start_s",
    "elapsed_ms",
    "active_ms",
    "measured",
    "throttled_within_sla_entries",
    "within_sla_entries",
    "p99_us",
    "target_us",
    "unreachable_ms",
    "late_read_entries",
    "owed_read_entries",
)


@dataclass(frozen=True, slots=True)
class Life:
    """A group's facts that judging needs. `active_at` None: it was never active."""

    organization_id: UUID
    promise: Promise
    region: str
    active_at: datetime | None
    delete_requested_at: datetime | None


class SlaRepository:
    def __init__(self, scope: Scope | EveryOrganization) -> None:
        self._scope = scope

    @property
    def _connection(self) -> AsyncConnection:
        return self._scope.connection

    async def judged(self, group_id: UUID, from_s: int, to_s: int) -> tuple[set[int], list[Tally]]:
        """Begins of the hours in [from_s, to_s) that are judged, and their sums. Bounds are begins of days.

        Hours for which windows have come since are not among them.
        """
        fresh = select(_DIRTY.hour_s).where(_DIRTY.group_id == _HOURS.group_id, _DIRTY.hour_s == _HOURS.hour_s)
        hours = self._scope.select(sla_hours, literal(1).label("length"), *list(_HOURS)[2:]).where(
            _HOURS.group_id == group_id, _HOURS.hour_s >= from_s, _HOURS.hour_s < to_s, ~fresh.exists()
        )
        days = self._scope.select(sla_days, literal(24).label("length"), *list(_DAYS)[2:]).where(
            _DAYS.group_id == group_id, _DAYS.day_s >= from_s, _DAYS.day_s < to_s
        )
        # One statement: hours become days meanwhile. The columns are the first part's.
        rows = (await self._connection.execute(union_all(hours, days))).mappings().all()
        begins = {row["hour_s"] + number * HOUR_S for row in rows for number in range(row["length"])}
        return begins, [_tally(row) for row in rows]

    async def bad_minutes(self, group_id: UUID, from_s: int, to_s: int) -> list[Minute]:
        """Minutes in [from_s, to_s) that missed a clause when their hours were judged, oldest first."""
        statement = (
            self._scope.select(sla_bad_minutes, *(_BAD[name] for name in _MINUTE))
            .where(_BAD.group_id == group_id, _BAD.start_s >= from_s, _BAD.start_s < to_s)
            .order_by(_BAD.start_s)
        )
        return [Minute(*row) for row in (await self._connection.execute(statement)).all()]

    async def lock(self, group_ids: Iterable[UUID]) -> None:
        """Until the end of the transaction, nobody else judges these groups."""
        for group_id in sorted(set(group_ids)):
            key = func.hashtextextended(f"judge {group_id}", 0)
            await self._connection.execute(select(func.pg_advisory_xact_lock(key)))

    async def lives(self, group_ids: Collection[UUID]) -> dict[UUID, Life]:
        statement = self._scope.select(groups).where(groups.c.id.in_(group_ids))
        rows = (await self._connection.execute(statement)).all()
        earlier = self._scope.select(former_slas).where(former_slas.c.group_id.in_(group_ids))
        former = defaultdict(list)
        for row in (await self._connection.execute(earlier)).all():
            former[row.group_id].append(row)
        return {
            row.id: Life(
                row.organization_id,
                Promise.of_group(row, former[row.id]),
                row.sla["region"],
                row.active_at,
                row.delete_requested_at,
            )
            for row in rows
        }

    async def folded(self, hours: Iterable[Hour]) -> set[Hour]:
        """Hours among these whose day's judgement is final."""
        wanted = set(hours)
        days = {(group_id, hour_s // DAY_S * DAY_S) for group_id, hour_s in wanted}
        statement = self._scope.select(sla_days, _DAYS.group_id, _DAYS.day_s)
        rows = (await self._connection.execute(statement.where(tuple_(_DAYS.group_id, _DAYS.day_s).in_(days)))).all()
        final = {(row[0], int(row[1])) for row in rows}
        return {hour for hour in wanted if (hour[0], hour[1] // DAY_S * DAY_S) in final}

    async def judged_with(self, hour_s: int, servers: Collection[int]) -> set[Hour]:
        """Judged hours that begin at `hour_s`, of groups of which one of the servers reported. Where an hour is packed,
        any may be among them."""
        windows = usage_windows.c
        of_server = self._scope.select(usage_windows, windows.group_id).where(
            windows.group_id == _HOURS.group_id,
            windows.server_id.in_(servers),
            windows.window_start_s >= hour_s,
            windows.window_start_s < hour_s + HOUR_S,
        )
        packed = self._scope.select(packed_hours, packed_hours.c.group_id).where(
            packed_hours.c.group_id == _HOURS.group_id, packed_hours.c.hour_s == hour_s
        )
        statement = self._scope.select(sla_hours, _HOURS.group_id, _HOURS.hour_s).where(
            _HOURS.hour_s == hour_s, of_server.exists() | packed.exists()
        )
        return {(row[0], row[1]) for row in (await self._connection.execute(statement)).all()}

    async def days_of_hours(self, before_s: int) -> list[int]:
        """Begins of days before `before_s` that still have judged hours."""
        day_s = _HOURS.hour_s - _HOURS.hour_s % DAY_S
        statement = self._scope.select(sla_hours, day_s).where(_HOURS.hour_s < before_s).distinct()
        return [int(row[0]) for row in (await self._connection.execute(statement)).all()]

    async def mark_unjudged(self, day_s: int) -> int:
        """Mark hours of the day in which a group was in force and that nobody judged: no window of them ever came.
        Returns their number."""
        assert isinstance(self._scope, EveryOrganization)
        bounds = (literal(each, BigInteger) for each in (day_s, day_s + DAY_S - HOUR_S, HOUR_S))
        hours = func.generate_series(*bounds).table_valued(column("hour_s", BigInteger)).render_derived(name="hours")
        begin, end = func.to_timestamp(hours.c.hour_s), func.to_timestamp(hours.c.hour_s + HOUR_S)
        known = select(_HOURS.hour_s).where(_HOURS.group_id == groups.c.id, _HOURS.hour_s == hours.c.hour_s)
        folded = select(_DAYS.day_s).where(_DAYS.group_id == groups.c.id, _DAYS.day_s == day_s)
        silent = (
            self._scope.select(groups, groups.c.organization_id, groups.c.id, hours.c.hour_s)
            .join(hours, and_(groups.c.active_at < end, func.coalesce(groups.c.delete_requested_at, end) > begin))
            .where(~known.exists(), ~folded.exists())
        )
        marked = self._scope.upsert(usage_dirty).from_select(list(_DIRTY.keys()), silent).on_conflict_do_nothing()
        return (await self._connection.execute(marked)).rowcount

    async def fold(self, day_s: int, groups_max: int) -> int:
        """Put the judged hours of the day together, for some groups that still have any. Returns their number."""
        assert isinstance(self._scope, EveryOrganization)
        of_day = and_(_HOURS.hour_s >= day_s, _HOURS.hour_s < day_s + DAY_S)
        some = self._scope.select(sla_hours, _HOURS.group_id).where(of_day).distinct().limit(groups_max)
        group_ids = [row[0] for row in (await self._connection.execute(some)).all()]
        await self.lock(group_ids)
        found = self._scope.delete(sla_hours).where(of_day, _HOURS.group_id.in_(group_ids)).returning(*_HOURS)
        parts: dict[tuple[UUID, UUID], list[Tally]] = defaultdict(list)
        for row in (await self._connection.execute(found)).mappings().all():
            parts[row["organization_id"], row["group_id"]].append(_tally(row))
        if not parts:
            return 0
        days = [
            {"organization_id": str(owner), "group_id": str(group_id), "day_s": day_s, **_row(summed(tallies))}
            for (owner, group_id), tallies in sorted(parts.items())
        ]
        kept = self._scope.upsert(sla_days).from_select(list(_DAYS.keys()), rows_sent(sla_days))
        await self._connection.execute(kept, {ROWS: days})
        return len(parts)

    async def counts(self, hours: Collection[Hour]) -> dict[Hour, tuple[int, int]]:
        """Minutes and available minutes of those hours that are judged. The caller holds the groups' lock."""
        if not hours:
            return {}
        due = hours_sent()
        of_hours = and_(_HOURS.group_id == due.c.group_id, _HOURS.hour_s == due.c.hour_s)
        columns = (_HOURS.group_id, _HOURS.hour_s, _HOURS.minutes, _HOURS.available_minutes)
        statement = self._scope.select(sla_hours, *columns).join(due, of_hours)
        rows = (await self._connection.execute(statement, rows_of_hours(hours))).all()
        return {(row[0], row[1]): (row[2], row[3]) for row in rows}

    async def add_to_regions(self, changes: RegionHours) -> None:
        """Add to the sums of regions. Two transactions wait for each other here in the order of the keys."""
        rows = [
            {"region": region, "hour_s": hour_s, "minutes": minutes, "available_minutes": available}
            for (region, hour_s), (minutes, available) in sorted(changes.items())
            if minutes or available
        ]
        for row in rows:
            # Row by row: a changed sum may be smaller, and a row to insert must not be negative by itself.
            added = {name: _REGIONS[name] + row[name] for name in ("minutes", "available_minutes")}
            of_row = and_(_REGIONS.region == row["region"], _REGIONS.hour_s == row["hour_s"])
            changed = await self._connection.execute(update(sla_region_hours).where(of_row).values(**added))
            if changed.rowcount == 0:
                known = insert(sla_region_hours).values(**row)
                again = known.on_conflict_do_update(index_elements=["region", "hour_s"], set_=added)
                await self._connection.execute(again)

    async def store(self, judged: Mapping[Hour, tuple[UUID, Tally, list[Minute]]]) -> None:
        """Store these hours in the place of what is there: each with its organization, sum and bad minutes."""
        assert isinstance(self._scope, EveryOrganization)
        if not judged:
            return
        keys = sorted(judged)
        due = hours_sent()
        of_hours = and_(
            _BAD.group_id == due.c.group_id, _BAD.start_s >= due.c.hour_s, _BAD.start_s < due.c.hour_s + HOUR_S
        )
        await self._connection.execute(self._scope.delete(sla_bad_minutes).where(of_hours), rows_of_hours(keys))
        hours, bad = [], []
        for key in keys:
            organization_id, tally, minutes = judged[key]
            owned = {"organization_id": str(organization_id), "group_id": str(key[0])}
            hours.append(owned | {"hour_s": key[1], **_row(tally)})
            bad += [owned | {name: getattr(minute, name) for name in _MINUTE} for minute in minutes]
        stored = self._scope.upsert(sla_hours).from_select(list(_HOURS.keys()), rows_sent(sla_hours))
        anew = {name: stored.excluded[name] for name in (*COUNTS, "latency_us")}
        stored = stored.on_conflict_do_update(index_elements=["group_id", "hour_s"], set_=anew)
        await self._connection.execute(stored, {ROWS: hours})
        if bad:
            kept = self._scope.upsert(sla_bad_minutes).from_select(list(_BAD.keys()), rows_sent(sla_bad_minutes))
            await self._connection.execute(kept, {ROWS: bad})


def _row(tally: Tally) -> dict[str, Any]:
    counts = {name: getattr(tally, name) for name in COUNTS}
    return counts | {"latency_us": {str(bucket): count for bucket, count in tally.latency_us.items()}}


def _tally(row: Any) -> Tally:
    counts = {name: row[name] for name in COUNTS}
    return Tally(**counts, latency_us={int(bucket): count for bucket, count in row["latency_us"].items()})
