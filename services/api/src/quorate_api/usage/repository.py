"""Usage windows. Each organization reads its own; the worker writes them for all."""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Integer, Uuid, and_, any_, case, cast, column, func, literal, select, values
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import ROWS, EveryOrganization, Scope, rows_sent
from quorate_api.database.tables import groups, usage_windows
from quorate_api.telemetry.windows import COUNTERS, DAY_S, HEAD_ROLES, Window
from quorate_api.usage.calculator import Count

_COLUMNS = usage_windows.c
UPSERT_ROWS = 500  # a few hundred kilobytes of JSON
READ_ROWS = 500  # some milliseconds
_SENT = rows_sent(usage_windows)
_HISTOGRAMS = ("latency_us", "judged_latency_us")


@dataclass(frozen=True, slots=True)
class Owner:
    """A group's organization, and the time since which it has the group."""

    organization_id: UUID
    since_s: float


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Minutes of a group in [from_s, to_s)."""

    group_id: UUID
    from_s: int
    to_s: int


class UsageRepository:
    def __init__(self, scope: Scope | EveryOrganization) -> None:
        self._scope = scope

    @property
    def _connection(self) -> AsyncConnection:
        return self._scope.connection

    async def windows(self, group_id: UUID, from_s: int, to_s: int) -> list[Window]:
        """Windows that begin in [from_s, to_s), oldest first."""
        statement = (
            self._scope.select(usage_windows)
            .where(_COLUMNS.group_id == group_id, _COLUMNS.window_start_s >= from_s, _COLUMNS.window_start_s < to_s)
            .order_by(_COLUMNS.window_start_s)
        )
        found: list[Window] = []
        # A month has a hundred thousand of them: other requests go on between parts.
        async with self._connection.stream(statement) as rows:
            async for part in rows.mappings().partitions(READ_ROWS):
                found += [_window(row) for row in part]
        return found

    async def counts(self, group_id: UUID, from_s: int, to_s: int) -> list[Count]:
        """Counters of each log in each minute in [from_s, to_s)."""
        key = (_COLUMNS.window_start_s, _COLUMNS.log_epoch)
        greatest = (func.max(_COLUMNS.committed_entries), func.max(_COLUMNS.committed_bytes))
        statement = self._scope.select(usage_windows, *key, *greatest, func.sum(_COLUMNS.read_entries)).where(
            _COLUMNS.group_id == group_id, _COLUMNS.window_start_s >= from_s, _COLUMNS.window_start_s < to_s
        )
        rows = (await self._connection.execute(statement.group_by(*key))).all()
        return [Count(*(int(value) for value in row)) for row in rows]

    async def heads_around(self, spans: Collection[Span], near_s: int) -> dict[Span, list[Window]]:
        """Heads' windows of each span, and those around it as far as the nearest minutes in which one was active.

        `near_s`: no further than this. A former head that only takes itself for the head is active in none, so the head
        that followed it is among them.
        """
        found: dict[Span, list[Window]] = {span: [] for span in spans}
        if not spans:
            return found
        keys = [(number, span.group_id, span.from_s, span.to_s) for number, span in enumerate(found)]
        due = values(
            column("number", Integer), column("group_id", Uuid), column("from_s", BigInteger),
            column("to_s", BigInteger), name="due",
        ).data(keys)  # fmt: skip
        times = self._scope.select(usage_windows, _COLUMNS.window_start_s).where(
            _COLUMNS.group_id == due.c.group_id, _COLUMNS.role.in_(HEAD_ROLES), _COLUMNS.active_ms > 0
        )
        before = times.where(
            _COLUMNS.window_start_s < due.c.from_s, _COLUMNS.window_start_s >= due.c.from_s - near_s
        ).order_by(_COLUMNS.window_start_s.desc())
        after = times.where(
            _COLUMNS.window_start_s >= due.c.to_s, _COLUMNS.window_start_s < due.c.to_s + near_s
        ).order_by(_COLUMNS.window_start_s)
        near = (
            select(
                func.coalesce(before.limit(1).correlate(due).scalar_subquery(), due.c.from_s).label("first_s"),
                func.coalesce(after.limit(1).correlate(due).scalar_subquery(), due.c.to_s - 1).label("last_s"),
            )
            .correlate(due)
            .lateral("near")
        )
        in_span = and_(
            _COLUMNS.role.in_(HEAD_ROLES),
            _COLUMNS.window_start_s >= near.c.first_s,
            _COLUMNS.window_start_s <= near.c.last_s,
        )
        statement = self._scope.select(usage_windows, due.c.number, *_COLUMNS)
        statement = (
            statement.join(due, _COLUMNS.group_id == due.c.group_id)
            .join(near, in_span)
            .order_by(_COLUMNS.window_start_s)
        )
        order = list(found)
        async with self._connection.stream(statement) as rows:
            async for part in rows.mappings().partitions(READ_ROWS):
                for row in part:
                    found[order[row["number"]]].append(_window(row))
        return found

    async def heads_windows(self, from_s: int, to_s: int) -> dict[str, list[Window]]:
        """Heads' windows of all groups that begin in [from_s, to_s), by group."""
        assert isinstance(self._scope, EveryOrganization)
        statement = self._scope.select(usage_windows).where(
            _COLUMNS.role.in_(HEAD_ROLES), _COLUMNS.window_start_s >= from_s, _COLUMNS.window_start_s < to_s
        )
        found: dict[str, list[Window]] = defaultdict(list)
        for row in (await self._connection.execute(statement)).all():
            window = _window(row._mapping)
            found[window.group_id].append(window)
        return found

    async def owners_of(self, group_ids: set[UUID]) -> dict[UUID, Owner]:
        """The owner of each known group."""
        ids = literal(list(group_ids), ARRAY(groups.c.id.type))
        statement = self._scope.select(groups, groups.c.id, groups.c.organization_id, groups.c.created_at)
        rows = (await self._connection.execute(statement.where(groups.c.id == any_(ids)))).all()
        return {row[0]: Owner(row[1], row[2].timestamp()) for row in rows}

    async def of_day(self, day_s: int) -> AsyncIterator[Window]:
        """All windows of the day that begins at `day_s`."""
        assert isinstance(self._scope, EveryOrganization)
        statement = self._scope.select(usage_windows).where(
            _COLUMNS.window_start_s >= day_s, _COLUMNS.window_start_s < day_s + DAY_S
        )
        # In one order, so that the same windows make the same file.
        key = ("window_start_s", "group_id", "server_id", "incarnation", "epoch")
        statement = statement.order_by(*(_COLUMNS[name] for name in key))
        async with self._connection.stream(statement) as rows:
            async for row in rows.mappings():
                yield _window(row)

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


def _window(row: Any) -> Window:
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
