"""The service's status: what the worker sampled, and what operators tell. No row belongs to an organization."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Table, bindparam, delete, func, or_, select, true
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api import limits
from quorate_api.database.tables import (
    sla_region_hours,
    status_hours,
    status_incidents,
    status_regions,
    status_updates,
)
from quorate_api.status.incidents import Told, Update
from quorate_api.status.rules import Component, DaySum, Sample
from quorate_api.telemetry.windows import DAY_S, HOUR_S, WINDOW_S

_REGIONS, _HOURS, _JUDGED = status_regions.c, status_hours.c, sla_region_hours.c
_INCIDENTS, _UPDATES = status_incidents.c, status_updates.c


@dataclass(frozen=True, slots=True, order=True)
class Looked:
    """A minute in which the worker looked at a component."""

    minute_s: int
    region: str
    component: Component
    good: bool


class StatusRepository:
    """Rows that everybody may see."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def samples(self) -> list[Sample]:
        """The newest of each region, by its name."""
        rows = (await self._connection.execute(select(status_regions).order_by(_REGIONS.region))).mappings().all()
        return [Sample(**row) for row in rows]

    async def days(self, from_s: int, recent_s: int) -> list[DaySum]:
        """Sums of each day since `from_s`, and of the hours since `recent_s` in them."""
        judged = _sums(sla_region_hours, _JUDGED.available_minutes, from_s, recent_s)
        sampled = _sums(status_hours, _HOURS.good_minutes, from_s, recent_s, _HOURS.component)
        found = [_day(row, row.region, "data_plane") for row in (await self._connection.execute(judged)).all()]
        return found + [_day(row, row.region, row.component) for row in (await self._connection.execute(sampled)).all()]

    async def incidents(self, since: datetime) -> list[Told]:
        """Open ones, then those with an update since then; both newest first."""
        newest = (
            select(_UPDATES.phase, _UPDATES.at)
            .where(_UPDATES.incident_id == _INCIDENTS.id)
            .order_by(_UPDATES.id.desc())
            .limit(1)
            .lateral("newest")
        )
        statement = (
            select(status_incidents)
            .join(newest, true())
            .where(or_(newest.c.phase != "resolved", newest.c.at >= since))
            .order_by(newest.c.phase == "resolved", _INCIDENTS.id.desc())
            .limit(limits.STATUS_INCIDENTS_MAX)
        )
        return await self._told(list((await self._connection.execute(statement)).all()))

    async def incident(self, incident_id: UUID) -> Told | None:
        statement = select(status_incidents).where(_INCIDENTS.id == incident_id)
        found = await self._told(list((await self._connection.execute(statement)).all()))
        return found[0] if found else None

    async def open(self, told: Told) -> None:
        values = {name: getattr(told, name) for name in ("id", "title", "opened_at")}
        lists = {"regions": list(told.regions), "components": list(told.components)}
        await self._connection.execute(insert(status_incidents).values(**values, **lists))
        await self.add(told.id, told.latest)

    async def add(self, incident_id: UUID, one: Update) -> None:
        await self._connection.execute(insert(status_updates).values(incident_id=incident_id, **asdict(one)))

    async def _told(self, rows: Collection[Row[Any]]) -> list[Told]:
        number = func.row_number().over(partition_by=_UPDATES.incident_id, order_by=_UPDATES.id.desc())
        ids = [row.id for row in rows]
        numbered = select(status_updates, number.label("number")).where(_UPDATES.incident_id.in_(ids)).subquery()
        statement = select(numbered).where(numbered.c.number <= limits.STATUS_UPDATES_MAX)
        updates: dict[UUID, list[Update]] = defaultdict(list)
        for row in (await self._connection.execute(statement.order_by(numbered.c.id.desc()))).all():
            updates[row.incident_id].append(Update(row.id, row.at, row.phase, row.impact, row.message))
        return [
            Told(row.id, row.title, tuple(row.regions), tuple(row.components), row.opened_at, updates[row.id])
            for row in rows
        ]


class SampleRepository:
    """The worker's side."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def regions(self) -> set[str]:
        return {row.region for row in (await self._connection.execute(select(_REGIONS.region))).all()}

    async def keep(self, samples: Collection[Sample]) -> None:
        """Each in the place of an older one. Without a time of usage, the known one stays."""
        for sample in sorted(samples, key=lambda sample: sample.region):
            known = insert(status_regions).values(**asdict(sample))
            new = known.excluded
            values: dict[str, Any] = {column.name: new[column.name] for column in _REGIONS if column.name != "region"}
            values["usage_until"] = func.coalesce(new.usage_until, _REGIONS.usage_until)
            await self._connection.execute(
                known.on_conflict_do_update(
                    index_elements=["region"], set_=values, where=_REGIONS.sampled_at < new.sampled_at
                )
            )

    async def forget_regions(self, but: Collection[str]) -> None:
        """Regions without servers and groups are shown no more."""
        await self._connection.execute(delete(status_regions).where(_REGIONS.region.not_in(list(but))))

    async def count(self, looked: Collection[Looked]) -> None:
        """Count each minute of a component once, whoever looked and however often. In the order of time."""
        statement = insert(status_hours).values(
            region=bindparam("region"),
            component=bindparam("component"),
            hour_s=bindparam("hour_s"),
            minutes=1,
            good_minutes=bindparam("good"),
            last_minute_s=bindparam("minute_s"),
        )
        statement = statement.on_conflict_do_update(
            index_elements=["region", "component", "hour_s"],
            set_={
                "minutes": _HOURS.minutes + 1,
                "good_minutes": _HOURS.good_minutes + statement.excluded.good_minutes,
                "last_minute_s": statement.excluded.last_minute_s,
            },
            where=_HOURS.last_minute_s < statement.excluded.last_minute_s,
        )
        for one in sorted(looked):
            assert one.minute_s % WINDOW_S == 0, "a minute begins"
            hour_s = one.minute_s // HOUR_S * HOUR_S
            await self._connection.execute(statement, asdict(one) | {"hour_s": hour_s, "good": int(one.good)})

    async def forget_hours(self, before_s: int) -> None:
        for table in (status_hours, sla_region_hours):
            await self._connection.execute(delete(table).where(table.c.hour_s < before_s))


def _sums(table: Table, good: Any, from_s: int, recent_s: int, *by: Any) -> Any:
    """Sums of each region and day since `from_s`, apart by `by`."""
    columns = table.c
    is_recent = columns.hour_s >= recent_s
    statement = select(
        columns.region,
        *by,
        (columns.hour_s - columns.hour_s % DAY_S).label("day_s"),
        func.min(columns.hour_s).label("first_hour_s"),
        func.sum(columns.minutes).label("minutes"),
        func.sum(good).label("good_minutes"),
        func.coalesce(func.sum(columns.minutes).filter(is_recent), 0).label("recent_minutes"),
        func.coalesce(func.sum(good).filter(is_recent), 0).label("recent_good_minutes"),
    )
    # By the label's name: PostgreSQL would take the expression with another parameter for another one.
    return statement.where(columns.hour_s >= from_s).group_by(columns.region, *by, "day_s")


def _day(row: Row[Any], region: str, component: Component) -> DaySum:
    sums = (row.day_s, row.first_hour_s, row.minutes, row.good_minutes, row.recent_minutes, row.recent_good_minutes)
    return DaySum(region, component, *(int(each) for each in sums))
