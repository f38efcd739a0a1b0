"""Usage windows. Each organization reads its own; the worker writes them for all."""

from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Integer,
    LargeBinary,
    any_,
    case,
    cast,
    func,
    literal,
    null,
    select,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import ROWS, EveryOrganization, Scope, hours_sent, rows_of_hours, rows_sent
from quorate_api.database.tables import groups, packed_hours, usage_windows
from quorate_api.packed.format import Packed
from quorate_api.packed.repository import PackedRepository
from quorate_api.telemetry.windows import COUNTERS, DAY_S, HOUR_S, Window
from quorate_api.usage.calculator import Count

_COLUMNS, _PACKED = usage_windows.c, packed_hours.c
NO_WINDOW = [cast(null(), each.type).label(each.name) for each in _COLUMNS]  # beside a packed hour
UPSERT_ROWS = 500  # a few hundred kilobytes of JSON
READ_ROWS = 500  # some milliseconds
IN_PARTS = {"yield_per": READ_ROWS}  # else the first rows come one by one
DAY_GROUPS = 20  # at degree 3, a day of them has 86,400 windows
_SENT = rows_sent(usage_windows)
_HISTOGRAMS = ("latency_us", "judged_latency_us")


@dataclass(frozen=True, slots=True)
class Owner:
    """A group's organization, and the time since which it has the group."""

    organization_id: UUID
    since_s: float


class UsageRepository:
    def __init__(self, scope: Scope | EveryOrganization) -> None:
        self._scope = scope

    @property
    def _connection(self) -> AsyncConnection:
        return self._scope.connection

    async def windows(self, group_id: UUID, from_s: int, to_s: int) -> list[Window]:
        """Windows that begin in [from_s, to_s), oldest first."""
        nothing = cast(null(), LargeBinary).label("packed")
        minutes = self._scope.select(usage_windows, *_COLUMNS, nothing).where(*_minutes(group_id, from_s, to_s))
        hours = self._scope.select(packed_hours, *NO_WINDOW, _PACKED.windows).where(*_hours(group_id, from_s, to_s))
        found: list[Window] = []
        # One statement, and so one state of both tables: an hour is in one of them.
        # A month has a hundred thousand windows: other requests go on between parts.
        async with self._connection.stream(union_all(minutes, hours), execution_options=IN_PARTS) as rows:
            async for part in rows.mappings().partitions(READ_ROWS):
                for row in part:
                    if row["packed"] is None:
                        found.append(window_of(row))
                    else:
                        found += Packed.of(row["packed"]).windows(str(group_id))
        return sorted(
            (window for window in found if from_s <= window.window_start_s < to_s),
            key=lambda window: window.window_start_s,
        )

    async def counts(self, group_id: UUID, from_s: int, to_s: int, minutes_from_s: int = 0) -> list[Count]:
        """Counters of each log in each minute in [from_s, to_s). Packed hours that end before `minutes_from_s` have one
        for each log, at their begin, without reads."""
        key = (_COLUMNS.window_start_s, _COLUMNS.log_epoch)
        greatest = (func.max(_COLUMNS.committed_entries), func.max(_COLUMNS.committed_bytes))
        reads = (func.sum(_COLUMNS.read_entries), func.sum(_COLUMNS.read_bytes))
        minutes = self._scope.select(usage_windows, *key, *greatest, *reads)
        minutes = minutes.add_columns(cast(null(), LargeBinary)).where(*_minutes(group_id, from_s, to_s)).group_by(*key)
        none = [cast(null(), BigInteger)] * 6
        packed = self._scope.select(packed_hours, *none, _PACKED.windows).where(*_hours(group_id, from_s, to_s))
        # One statement, as above.
        rows = (await self._connection.execute(union_all(minutes, packed))).all()
        found: list[Count] = []
        for *counted, hour in rows:
            if hour is None:
                found.append(Count(*map(int, counted)))
            else:
                counts = _counts(Packed.of(hour), minutes_from_s)
                found += [count for count in counts if from_s <= count.start_s < to_s]
        return found

    async def owners_of(self, group_ids: set[UUID]) -> dict[UUID, Owner]:
        """The owner of each known group."""
        ids = literal(list(group_ids), ARRAY(groups.c.id.type))
        statement = self._scope.select(groups, groups.c.id, groups.c.organization_id, groups.c.created_at)
        rows = (await self._connection.execute(statement.where(groups.c.id == any_(ids)))).all()
        return {row[0]: Owner(row[1], row[2].timestamp()) for row in rows}

    async def of_day(self, day_s: int) -> AsyncIterator[Window]:
        """All windows of the day that begins at `day_s`, by group and then by time."""
        assert isinstance(self._scope, EveryOrganization)
        packed = PackedRepository(self._scope)
        of_day = await self._groups_of_day(day_s)
        for start in range(0, len(of_day), DAY_GROUPS):
            group_ids = of_day[start : start + DAY_GROUPS]
            statement = self._scope.select(usage_windows).where(
                _COLUMNS.window_start_s >= day_s,
                _COLUMNS.window_start_s < day_s + DAY_S,
                _COLUMNS.group_id.in_(group_ids),
            )
            found = [window_of(row) for row in (await self._connection.execute(statement)).mappings()]
            found += await packed.of_day(day_s, group_ids)
            # In one order, so that the same windows make the same file.
            for window in sorted(found, key=lambda each: (each.group_id, each.window_start_s, each.key)):
                yield window

    async def _groups_of_day(self, day_s: int) -> list[UUID]:
        rows = self._scope.select(usage_windows, _COLUMNS.group_id).where(
            _COLUMNS.window_start_s >= day_s, _COLUMNS.window_start_s < day_s + DAY_S
        )
        hours = self._scope.select(packed_hours, _PACKED.group_id).where(
            _PACKED.hour_s >= day_s, _PACKED.hour_s < day_s + DAY_S
        )
        found = await self._connection.execute(rows.union(hours).order_by("group_id"))
        return [row[0] for row in found.all()]

    async def lock_days(self) -> bool:
        """Until the end of the transaction, nobody else settles days. False: somebody else does."""
        key = func.hashtextextended("settle usage days", 0)
        return bool((await self._connection.execute(select(func.pg_try_advisory_xact_lock(key)))).scalar_one())

    async def days(self) -> list[int]:
        """Begins of the days that have room for windows, oldest first."""
        found = await self._connection.execute(select(func.usage_days().column_valued("day_s")))
        return [int(row[0]) for row in found.all()]

    async def ensure_days(self, windows: Iterable[Window]) -> None:
        """Make room for these windows. Outside of the transaction that stores them: others wait for its end."""
        for day_s in sorted({window.window_start_s // DAY_S * DAY_S for window in windows}):
            await self._connection.execute(select(func.ensure_usage_day(cast(day_s, BigInteger))))

    async def drop_day(self, day_s: int) -> None:
        """Remove all windows of a day whose hours are summed up. Raises if it is not, or is one of the last three."""
        await self._connection.execute(select(func.drop_usage_day(cast(day_s, BigInteger))))

    async def take(self, hours: Collection[tuple[UUID, int]]) -> list[Window]:
        """Windows of these hours, in the order of their keys. They are no more. The caller holds the hours' marks."""
        assert isinstance(self._scope, EveryOrganization)
        if not hours:
            return []
        due = hours_sent()
        taken = self._scope.delete(usage_windows).where(
            _COLUMNS.group_id == due.c.group_id,
            _COLUMNS.window_start_s >= due.c.hour_s,
            _COLUMNS.window_start_s < due.c.hour_s + HOUR_S,
        )
        rows = (await self._connection.execute(taken.returning(*_COLUMNS), rows_of_hours(hours))).mappings()
        return sorted((window_of(row) for row in rows), key=lambda window: window.key)

    async def upsert(self, windows: list[Window], owners: dict[UUID, Owner]) -> None:
        """Store the greatest of every counter. `windows` must be merged and sorted by key."""
        assert isinstance(self._scope, EveryOrganization)
        for start in range(0, len(windows), UPSERT_ROWS):
            rows = [_row(window, owners) for window in windows[start : start + UPSERT_ROWS]]
            statement = self._scope.upsert(usage_windows).from_select(list(_COLUMNS.keys()), _SENT)
            new = statement.excluded
            # One process's histogram of one window only grows: the one with more values has the greater of every
            # bucket. The role comes from the report with the greater progress.
            newer = new.latency_count > _COLUMNS.latency_count
            further = _progress(new) > _progress(_COLUMNS)
            await self._connection.execute(
                statement.on_conflict_do_update(
                    index_elements=["group_id", "server_id", "incarnation", "epoch", "window_start_s"],
                    set_={
                        **{name: func.greatest(_COLUMNS[name], new[name]) for name in COUNTERS},
                        "role": case((further, new.role), else_=_COLUMNS.role),
                        "latency_count": func.greatest(_COLUMNS.latency_count, new.latency_count),
                        **{name: case((newer, new[name]), else_=_COLUMNS[name]) for name in _HISTOGRAMS},
                    },
                ),
                {ROWS: rows},
            )


def _minutes(group_id: UUID, from_s: int, to_s: int) -> tuple[Any, ...]:
    return _COLUMNS.group_id == group_id, _COLUMNS.window_start_s >= from_s, _COLUMNS.window_start_s < to_s


def _hours(group_id: UUID, from_s: int, to_s: int) -> tuple[Any, ...]:
    """Packed hours that have minutes in [from_s, to_s)."""
    return _PACKED.group_id == group_id, _PACKED.hour_s > from_s - HOUR_S, _PACKED.hour_s < to_s


def _counts(hour: Packed, minutes_from_s: int) -> list[Count]:
    starts = hour.numbers("window_start_s")
    if max(starts) // HOUR_S * HOUR_S + HOUR_S <= minutes_from_s:
        starts = [min(starts)] * hour.count
    names = ("log_epoch", "committed_entries", "committed_bytes", "read_entries", "read_bytes")
    found: dict[tuple[int, int], list[int]] = {}
    for start_s, log_epoch, entries, size, reads, read_bytes in zip(starts, *map(hour.numbers, names), strict=True):
        key = (start_s, log_epoch)
        had = found.get(key)
        if had is None:
            found[key] = [start_s, log_epoch, entries, size, reads, read_bytes]
            continue
        had[2] = max(had[2], entries)
        had[3] = max(had[3], size)
        had[4] += reads
        had[5] += read_bytes
    return list(map(Count._make, found.values()))


def _row(window: Window, owners: dict[UUID, Owner]) -> dict[str, Any]:
    counters = {name: getattr(window, name) for name in COUNTERS}
    return {
        **counters,
        "organization_id": str(owners[UUID(window.group_id)].organization_id),
        "group_id": window.group_id,
        "server_id": window.server_id,
        "incarnation": window.incarnation,
        "epoch": window.epoch,
        "window_start_s": window.window_start_s,
        "role": window.role,
        "log_epoch": window.log_epoch,
        "latency_count": sum(window.latency_us.values()),
        **{name: _buckets(getattr(window, name)) for name in _HISTOGRAMS},
    }


def _buckets(histogram: dict[int, int] | None) -> dict[str, int] | None:
    return None if histogram is None else {str(bucket): count for bucket, count in histogram.items()}


def _histogram(buckets: dict[str, int]) -> dict[int, int]:
    return {int(bucket): count for bucket, count in buckets.items()}


def _progress(columns: Any) -> Any:
    total = cast(0, Integer)
    for name in (*COUNTERS, "latency_count"):
        total = total + columns[name]
    return total


def window_of(row: Any) -> Window:
    """A row of `usage_windows` as a window."""
    return Window(
        group_id=str(row["group_id"]),
        server_id=row["server_id"],
        incarnation=row["incarnation"],
        epoch=row["epoch"],
        window_start_s=row["window_start_s"],
        role=row["role"],
        log_epoch=row["log_epoch"],
        **{name: row[name] for name in COUNTERS},
        latency_us=_histogram(row["latency_us"]),
        judged_latency_us=None if row["judged_latency_us"] is None else _histogram(row["judged_latency_us"]),
    )
