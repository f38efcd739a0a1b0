"""Totals of usage: by day for each log, and sums over hours and days. They equal what the windows sum up to.

Committed entries are a log's greatest counter, which ingest notes at once. Reads and storage are sums over minutes.
Ingest marks the hours of new windows dirty, and `roll` sums up hours that are over. A day is the sum of its hours that
were summed up. So a total is the days, and for dirty hours the windows in the place of the older sum.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CompoundSelect,
    and_,
    cast,
    func,
    literal,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import (
    ROWS,
    EveryOrganization,
    Rows,
    Scope,
    SomeOrganizations,
    hours_sent,
    rows_of_hours,
    rows_sent,
)
from quorate_api.database.tables import (
    settled_logs,
    settled_totals,
    usage_days,
    usage_dirty,
    usage_hours,
    usage_log_days,
    usage_windows,
)
from quorate_api.settled.repository import NEVER_S, settled_before
from quorate_api.telemetry.windows import DAY_S, HOUR_S, Window
from quorate_api.totals.days import DailyUse, Metered, Sums

_WINDOWS, _LOGS = usage_windows.c, usage_log_days.c
_HOURS, _DAYS, _DIRTY = usage_hours.c, usage_days.c, usage_dirty.c
_SETTLED, _SETTLED_LOGS = settled_totals.c, settled_logs.c
_SUMS = ("read_entries", "read_bytes", "stored_byte_minutes")
_Hour = tuple[int, ...]  # in this order
_NONE: _Hour = (0,) * len(_SUMS)


def _counters(columns: Any) -> tuple[Any, ...]:
    return (columns.group_id, columns.log_epoch, columns.committed_entries, columns.committed_bytes)


def _greatest(counters: Rows | CompoundSelect[Any]) -> Rows:
    """The greatest counters of each log."""
    found = counters.subquery()
    return select(
        found.c.group_id,
        found.c.log_epoch,
        func.max(found.c.committed_entries).label("entries"),
        func.max(found.c.committed_bytes).label("size"),
    ).group_by(found.c.group_id, found.c.log_epoch)


class TotalsRepository:
    def __init__(self, scope: Scope | EveryOrganization | SomeOrganizations) -> None:
        self._scope = scope

    @property
    def _connection(self) -> AsyncConnection:
        return self._scope.connection

    async def note(self, windows: Iterable[Window], owners: Mapping[UUID, UUID]) -> None:
        """Note windows in the transaction that stores them. `owners`: the organization of each group."""
        assert isinstance(self._scope, EveryOrganization)
        logs: dict[tuple[UUID, int, int], tuple[int, int]] = {}
        hours: set[tuple[UUID, int]] = set()
        for window in windows:
            group_id, start_s = UUID(window.group_id), window.window_start_s
            key = (group_id, window.log_epoch, start_s // DAY_S * DAY_S)
            entries, size = logs.get(key, (0, 0))
            logs[key] = (max(entries, window.committed_entries), max(size, window.committed_bytes))
            hours.add((group_id, start_s // HOUR_S * HOUR_S))
        if not hours:
            return
        # In the order of keys, so that concurrent transactions lock rows in the same order.
        of_logs = [
            {
                "organization_id": str(owners[group_id]), "group_id": str(group_id), "log_epoch": log_epoch,
                "day_s": day_s, "committed_entries": entries, "committed_bytes": size,
            }
            for (group_id, log_epoch, day_s), (entries, size) in sorted(logs.items())
        ]  # fmt: skip
        noted = self._scope.upsert(usage_log_days).from_select(list(_LOGS.keys()), rows_sent(usage_log_days))
        greatest = {
            name: func.greatest(_LOGS[name], noted.excluded[name]) for name in ("committed_entries", "committed_bytes")
        }
        noted = noted.on_conflict_do_update(index_elements=["group_id", "log_epoch", "day_s"], set_=greatest)
        await self._connection.execute(noted, {ROWS: of_logs})
        dirty = [
            {"organization_id": str(owners[group_id]), "group_id": str(group_id), "hour_s": hour_s}
            for group_id, hour_s in sorted(hours)
        ]
        marked = self._scope.upsert(usage_dirty).from_select(list(_DIRTY.keys()), rows_sent(usage_dirty))
        # The update locks the row until the windows are committed, so that no sum without them ends the mark.
        same = {"organization_id": marked.excluded.organization_id}
        marked = marked.on_conflict_do_update(index_elements=["group_id", "hour_s"], set_=same)
        await self._connection.execute(marked, {ROWS: dirty})

    async def committed_before(self, group_id: UUID, day_s: int) -> dict[int, tuple[int, int]]:
        """The greatest committed entries and bytes before the day that begins at `day_s`, for each log by its epoch."""
        assert day_s % DAY_S == 0, day_s

        def greatest(since_s: int) -> Rows:
            settled, days = self._logs(since_s, day_s)
            return _greatest(
                union_all(settled.where(_SETTLED_LOGS.group_id == group_id), days.where(_LOGS.group_id == group_id))
            )

        rows = await self._read(day_s, greatest)
        return {int(row.log_epoch): (int(row.entries), int(row.size)) for row in rows}

    async def metered(self, day_s: int | None) -> Metered:
        """The use of each group in windows before the day that begins at `day_s`; None: in all windows.

        Committed is the sum over the logs of their greatest counters, so the order in which windows of two logs arrive
        does not matter. Stored is the fullest replica's report for a minute, times the minute.
        """
        assert day_s is None or day_s % DAY_S == 0, day_s
        rows = await self._read(day_s, lambda since_s: self._totals(since_s, day_s))
        return DailyUse.of((row[0], 0, _sums(row[1:])) for row in rows).before(None)

    async def before_and_now(self, day_s: int) -> DailyUse:
        """The use before the day that begins at `day_s`, and that at any time."""
        assert day_s % DAY_S == 0, day_s
        since_s = await settled_before(self._connection, None)

        def both(before_s: int) -> Rows:
            # One statement, and so one state of all tables.
            parts = (
                (day_s - DAY_S, self._totals(before_s, day_s)),
                (day_s, self._totals(max(before_s, since_s), None)),
            )
            found = union_all(
                *(select(*each.subquery().c, literal(end_s, BigInteger).label("day")) for end_s, each in parts)
            ).subquery()
            return select(found).order_by(found.c.day)

        rows = await self._read(day_s, both)
        return DailyUse.of_totals((row[0], int(row[-1]), _sums(row[1:-1])) for row in rows)

    async def by_day(self, from_s: int) -> DailyUse:
        """The use of each day from the one that begins at `from_s`. All days before it are one.

        The sum before a day is what `metered` says of it. A log's share of a day is the rise of its greatest counter.
        """
        assert from_s % DAY_S == 0, from_s
        rows = await self._read(from_s, lambda since_s: self._days(since_s, from_s))
        return DailyUse.of((row[0], int(row[1]), _sums(row[2:])) for row in rows)

    async def _read(self, day_s: int | None, query: Callable[[int], Rows]) -> Sequence[Any]:
        """Rows of a query that adds totals until a time not after `day_s`, which it is given, and days since then."""
        since_s = await settled_before(self._connection, day_s)
        return (await self._connection.execute(query(since_s))).all()

    def _totals(self, since_s: int, day_s: int | None) -> Rows:
        logs = _greatest(union_all(*self._logs(since_s, day_s))).subquery()
        committed = select(logs.c.group_id, func.sum(logs.c.entries).label("entries")).group_by(logs.c.group_id)
        parts = self._sum_parts(since_s, day_s).subquery()
        added = (func.sum(parts.c[name]).label(name) for name in _SUMS)
        sums = select(parts.c.group_id, *added).group_by(parts.c.group_id).subquery()
        of_logs = committed.subquery()
        others = (func.coalesce(sums.c[name], 0).label(name) for name in _SUMS)
        joined = select(of_logs.c.group_id, of_logs.c.entries, *others)
        return joined.outerjoin(sums, sums.c.group_id == of_logs.c.group_id)

    def _days(self, since_s: int, from_s: int) -> Rows:
        earlier_s = from_s - DAY_S
        days = union_all(*self._logs(since_s, None)).subquery()
        day = func.greatest(days.c.day, earlier_s).label("day")
        reached = (
            select(days.c.group_id, days.c.log_epoch, day, func.max(days.c.committed_entries).label("entries"))
            .group_by(days.c.group_id, days.c.log_epoch, day)
            .subquery()
        )
        of_log = (reached.c.group_id, reached.c.log_epoch)
        greatest = select(
            *of_log,
            reached.c.day,
            func.max(reached.c.entries).over(partition_by=of_log, order_by=reached.c.day).label("entries"),
        ).subquery()
        of_log = (greatest.c.group_id, greatest.c.log_epoch)
        before = func.lag(greatest.c.entries).over(partition_by=of_log, order_by=greatest.c.day)
        rise = greatest.c.entries - func.coalesce(before, 0)
        nothing = literal(0, BigInteger)
        none = (nothing.label(name) for name in _SUMS)
        committed = select(greatest.c.group_id, greatest.c.day, rise.label("entries"), *none)
        parts = self._sum_parts(since_s, None).subquery()
        sums = select(
            parts.c.group_id, func.greatest(parts.c.day, earlier_s), nothing, *(parts.c[name] for name in _SUMS)
        )
        # One statement, and so one state of all tables.
        found = union_all(committed, sums).subquery()
        added = (func.sum(found.c[name]).label(name) for name in ("entries", *_SUMS))
        statement = select(found.c.group_id, found.c.day, *added)
        return statement.group_by(found.c.group_id, found.c.day).order_by(found.c.day)

    async def held_bytes(self, since_s: int) -> dict[UUID, int]:
        """The most bytes that a replica of each group held, by windows that begin at `since_s` or later."""
        columns = (_WINDOWS.group_id, func.max(_WINDOWS.stored_bytes))
        statement = self._scope.select(usage_windows, *columns).where(_WINDOWS.window_start_s >= since_s)
        rows = (await self._connection.execute(statement.group_by(_WINDOWS.group_id))).all()
        return {row[0]: int(row[1]) for row in rows}

    def _logs(self, since_s: int, day_s: int | None) -> tuple[Rows, Rows]:
        """Counters until `since_s`, and those of days from then on before `day_s`."""
        settled = self._scope.select(settled_logs, *_counters(_SETTLED_LOGS), cast(NEVER_S, BigInteger).label("day"))
        days = self._scope.select(usage_log_days, *_counters(_LOGS), _LOGS.day_s).where(_LOGS.day_s >= since_s)
        if day_s is not None:
            days = days.where(_LOGS.day_s < day_s)
        return settled.where(_SETTLED_LOGS.until_s == since_s), days

    def _sum_parts(self, since_s: int, day_s: int | None) -> CompoundSelect[Any]:
        """Totals until `since_s`. Days from then on, before `day_s`, as they were summed up; of dirty hours the windows
        in the place of the older sum."""
        settled = self._scope.select(
            settled_totals,
            _SETTLED.group_id,
            cast(NEVER_S, BigInteger).label("day"),
            *(_SETTLED[name] for name in _SUMS),
        ).where(_SETTLED.until_s == since_s)
        days = self._scope.select(
            usage_days, _DAYS.group_id, _DAYS.day_s.label("day"), *(_DAYS[name] for name in _SUMS)
        ).where(_DAYS.day_s >= since_s)
        day_of_hour = _DIRTY.hour_s // DAY_S * DAY_S

        # The owner, too: else PostgreSQL takes the dirty hours of all, and reads all hours of the organization.
        def of_dirty(columns: Any) -> Any:
            return and_(_DIRTY.group_id == columns.group_id, _DIRTY.organization_id == columns.organization_id)

        older = self._scope.select(usage_hours, _HOURS.group_id, day_of_hour, *(-_HOURS[name] for name in _SUMS)).join(
            usage_dirty, and_(of_dirty(_HOURS), _DIRTY.hour_s == _HOURS.hour_s)
        )
        columns = (_WINDOWS.group_id, day_of_hour, *_of_minute())
        in_hour = and_(_WINDOWS.window_start_s >= _DIRTY.hour_s, _WINDOWS.window_start_s < _DIRTY.hour_s + HOUR_S)
        anew = (
            self._scope.select(usage_windows, *columns)
            .join(usage_dirty, and_(of_dirty(_WINDOWS), in_hour))
            .group_by(_WINDOWS.group_id, _WINDOWS.window_start_s, _DIRTY.hour_s)
        )
        if day_s is not None:
            days, older = days.where(_DAYS.day_s < day_s), older.where(_DIRTY.hour_s < day_s)
            anew = anew.where(_DIRTY.hour_s < day_s)
        # The columns are the first part's.
        return union_all(settled, days, older, anew)

    async def is_dirty(self, day_s: int) -> bool:
        """Whether hours of the day that begins at `day_s` are still to be summed up."""
        found = self._scope.select(usage_dirty).where(_DIRTY.hour_s >= day_s, _DIRTY.hour_s < day_s + DAY_S)
        return (await self._connection.execute(found.limit(1))).first() is not None

    async def forget_hours(self, day_s: int) -> None:
        """Remove the sums of a day's hours: no window of it comes any more, and the day has their sum."""
        assert isinstance(self._scope, EveryOrganization)
        await self._connection.execute(
            self._scope.delete(usage_hours).where(_HOURS.hour_s >= day_s, _HOURS.hour_s < day_s + DAY_S)
        )

    async def roll(self, before_s: int, hours_max: int) -> list[tuple[UUID, int]]:
        """Sum up dirty hours that begin before `before_s`, the oldest first. Returns them: group and begin."""
        assert isinstance(self._scope, EveryOrganization)
        due = self._scope.select(usage_dirty).where(_DIRTY.hour_s < before_s).order_by(_DIRTY.hour_s).limit(hours_max)
        found = (await self._connection.execute(due.with_for_update(skip_locked=True))).all()
        if not found:
            return []
        owners = {(row.group_id, row.hour_s): row.organization_id for row in found}
        keys = sorted(owners)
        await self._connection.execute(
            self._scope.delete(usage_dirty).where(tuple_(_DIRTY.group_id, _DIRTY.hour_s).in_(keys))
        )
        fresh, old = await self._fresh(keys), await self._rolled(keys)
        hours, days = [], defaultdict[tuple[UUID, int], list[int]](lambda: list(_NONE))
        for key in keys:
            group_id, hour_s = key
            was = old.get(key, _NONE)
            # Windows grow. Where people removed some, what was summed up stays.
            new = _greater(fresh.get(key, _NONE), was)
            hours.append(
                {"organization_id": owners[key], "group_id": group_id, "hour_s": hour_s, "packed": False, **_named(new)}
            )
            day = days[group_id, hour_s // DAY_S * DAY_S]
            for place, (now, before) in enumerate(zip(new, was, strict=True)):
                day[place] += now - before
        await self._add_days(days, {group_id: owner for (group_id, _), owner in owners.items()})
        stored = self._scope.upsert(usage_hours).values(hours)
        summed = {name: stored.excluded[name] for name in (*_SUMS, "packed")}
        await self._connection.execute(stored.on_conflict_do_update(index_elements=["group_id", "hour_s"], set_=summed))
        return keys

    async def unpacked(self, from_s: int, before_s: int, hours_max: int) -> dict[tuple[UUID, int], UUID]:
        """Hours in [from_s, before_s) that were summed up and are not packed, the oldest first, with their owners."""
        statement = self._scope.select(usage_hours, _HOURS.group_id, _HOURS.hour_s, _HOURS.organization_id).where(
            ~_HOURS.packed, _HOURS.hour_s >= from_s, _HOURS.hour_s < before_s
        )
        rows = (await self._connection.execute(statement.order_by(_HOURS.hour_s).limit(hours_max))).all()
        return {(row.group_id, row.hour_s): row.organization_id for row in rows}

    async def hold(self, hours: Mapping[tuple[UUID, int], UUID]) -> list[tuple[UUID, int]]:
        """Those of the hours that are not marked. Nobody else marks them until the end of the transaction."""
        assert isinstance(self._scope, EveryOrganization)
        if not hours:
            return []
        rows = [
            {"organization_id": str(owner), "group_id": str(group_id), "hour_s": hour_s}
            for (group_id, hour_s), owner in sorted(hours.items())
        ]
        marked = self._scope.upsert(usage_dirty).from_select(list(_DIRTY.keys()), rows_sent(usage_dirty))
        new = marked.on_conflict_do_nothing().returning(_DIRTY.group_id, _DIRTY.hour_s)
        held = [(row[0], int(row[1])) for row in (await self._connection.execute(new, {ROWS: rows})).all()]
        if held:
            await self._connection.execute(
                self._scope.delete(usage_dirty).where(tuple_(_DIRTY.group_id, _DIRTY.hour_s).in_(held))
            )
        return held

    async def note_packed(self, hours: Collection[tuple[UUID, int]]) -> None:
        assert isinstance(self._scope, EveryOrganization)
        if hours:
            found = tuple_(_HOURS.group_id, _HOURS.hour_s).in_(hours)
            await self._connection.execute(self._scope.update(usage_hours).where(found).values(packed=True))

    async def _fresh(self, keys: list[tuple[UUID, int]]) -> dict[tuple[UUID, int], _Hour]:
        due = hours_sent()
        of_hour = and_(
            _WINDOWS.group_id == due.c.group_id,
            _WINDOWS.window_start_s >= due.c.hour_s,
            _WINDOWS.window_start_s < due.c.hour_s + HOUR_S,
        )
        minutes = (
            self._scope.select(usage_windows, due.c.group_id, due.c.hour_s, *_of_minute())
            .join(due, of_hour)
            .group_by(due.c.group_id, due.c.hour_s, _WINDOWS.window_start_s)
            .subquery()
        )
        added = (func.sum(minutes.c[name]).label(name) for name in _SUMS)
        statement = select(minutes.c.group_id, minutes.c.hour_s, *added)
        statement = statement.group_by(minutes.c.group_id, minutes.c.hour_s)
        rows = (await self._connection.execute(statement, rows_of_hours(keys))).all()
        return {(row.group_id, int(row.hour_s)): _hour(row) for row in rows}

    async def _rolled(self, keys: list[tuple[UUID, int]]) -> dict[tuple[UUID, int], _Hour]:
        statement = self._scope.select(usage_hours).where(tuple_(_HOURS.group_id, _HOURS.hour_s).in_(keys))
        rows = (await self._connection.execute(statement)).all()
        return {(row.group_id, row.hour_s): _hour(row) for row in rows}

    async def _add_days(self, days: Mapping[tuple[UUID, int], list[int]], owners: Mapping[UUID, UUID]) -> None:
        assert isinstance(self._scope, EveryOrganization)
        for (group_id, day_s), sums_of_day in sorted(days.items()):
            added = self._scope.upsert(usage_days).values(
                organization_id=owners[group_id], group_id=group_id, day_s=day_s, **_named(sums_of_day)
            )
            sums = {name: _DAYS[name] + added.excluded[name] for name in _SUMS}
            await self._connection.execute(added.on_conflict_do_update(index_elements=["group_id", "day_s"], set_=sums))


def _of_minute() -> tuple[Any, ...]:
    """What a minute's windows of a group add to the sums: reads of all replicas, and the fullest replica."""
    return (
        func.sum(_WINDOWS.read_entries).label("read_entries"),
        func.sum(_WINDOWS.read_bytes).label("read_bytes"),
        func.max(_WINDOWS.stored_bytes).label("stored_byte_minutes"),
    )


def _sums(columns: Iterable[Any]) -> Sums:
    """`columns`: entries, and those of `_SUMS`. PostgreSQL's sums are decimals."""
    return Sums(*map(int, columns))


def _hour(row: Any) -> _Hour:
    return tuple(int(getattr(row, name)) for name in _SUMS)


def _greater(one: _Hour, other: _Hour) -> _Hour:
    return tuple(map(max, one, other))


def _named(sums: Sequence[int]) -> dict[str, int]:
    return dict(zip(_SUMS, sums, strict=True))
