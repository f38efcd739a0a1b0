"""Groups and their events, within one organization."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Row, Text, case, cast, func, literal, or_
from sqlalchemy.sql.elements import ColumnElement

from quorate_api.access.permissions import is_prefix
from quorate_api.coordinator.schemas import GroupView
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.database.tables import former_slas, group_events, groups
from quorate_api.promises.availability import availability_ppm

ADMITTED = ("active", "degraded", "paused")


class GroupRepository:
    """The worker uses it too, with the view of every organization."""

    def __init__(self, scope: Scope | EveryOrganization) -> None:
        self._scope = scope

    async def insert(self, **values: object) -> bool:
        """False if the name is taken in the project."""
        assert isinstance(self._scope, Scope)
        statement = self._scope.upsert(groups, **values).on_conflict_do_nothing().returning(groups.c.id)
        return (await self._scope.connection.execute(statement)).first() is not None

    async def get(self, group_id: UUID) -> Row[Any] | None:
        statement = self._scope.select(groups).where(groups.c.id == group_id)
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def get_many(self, group_ids: Iterable[UUID]) -> list[Row[Any]]:
        statement = self._scope.select(groups).where(groups.c.id.in_(list(group_ids)))
        return list((await self._scope.connection.execute(statement)).all())

    async def names_taken(self, project_id: UUID, names: list[str], *, but: UUID | None = None) -> bool:
        """`but`: a group whose own names, and those of its partitions, do not count."""
        statement = self._scope.select(groups, groups.c.id).where(
            groups.c.project_id == project_id, groups.c.name.in_(names), groups.c.deleted_at.is_(None)
        )
        if but is not None:
            statement = statement.where(groups.c.id != but, groups.c.partition_of.is_distinct_from(but))
        return (await self._scope.connection.execute(statement)).first() is not None

    async def rename(self, group_id: UUID, name: str) -> None:
        """With all its partitions."""
        numbered = literal(f"{name}/") + cast(groups.c.partition, Text)
        statement = (
            self._scope.update(groups)
            .where(_with_partitions(group_id))
            .values(
                name=case((groups.c.partition_of.is_(None), name), else_=numbered), row_version=groups.c.row_version + 1
            )
        )
        await self._scope.connection.execute(statement)

    async def protect(self, group_id: UUID, protected: bool) -> None:
        statement = self._scope.update(groups).where(groups.c.id == group_id)
        await self._scope.connection.execute(
            statement.values(deletion_protection=protected, row_version=groups.c.row_version + 1)
        )

    async def page(
        self, project_id: UUID, limit: int, before: UUID | None, seen: tuple[str, ...] | None = None
    ) -> list[Row[Any]]:
        """Newest first. `seen`: names of groups, and begins of names with `*`; None: all."""
        statement = (
            self._scope.select(groups)
            .where(groups.c.project_id == project_id, groups.c.deleted_at.is_(None), groups.c.partition_of.is_(None))
            .order_by(groups.c.id.desc())
            .limit(limit)
        )
        if before is not None:
            statement = statement.where(groups.c.id < before)
        if seen is not None:
            statement = statement.where(or_(*(_is_named(name) for name in seen)))
        return list((await self._scope.connection.execute(statement)).all())

    async def observe(self, view: GroupView, now: datetime) -> bool:
        """Store the coordinator's view. An older epoch, or a group under deletion, changes nothing: False.

        `row_version` (the ETag) grows only when a value changed.
        """
        replicas = [replica.model_dump() for replica in view.replicas]
        learners = [learner.model_dump() for learner in view.learners]
        new = groups.c.status.is_distinct_from(view.status) | or_(
            groups.c.epoch != view.epoch,
            groups.c.replicas.is_distinct_from(replicas),
            groups.c.learners.is_distinct_from(learners),
            groups.c.access != view.access,
        )
        values: dict[str, Any] = {
            "status": view.status,
            "epoch": view.epoch,
            "replicas": replicas,
            "learners": learners,
            "access": view.access,
            "observed_at": now,
            "row_version": groups.c.row_version + case((new, 1), else_=0),
        }
        if view.status in ADMITTED:
            values["active_at"] = func.coalesce(groups.c.active_at, now)
            domains = len({replica.failure_domain for replica in view.replicas} - {None})
            first = case((groups.c.active_at.is_(None), availability_ppm(domains)), else_=groups.c.availability_ppm)
            values["availability_ppm"] = first  # as the group was placed, for its whole life
        statement = (
            self._scope.update(groups)
            .where(
                groups.c.id == view.group_id,
                groups.c.epoch <= view.epoch,
                groups.c.status.not_in(("deleting", "deleted")),
            )
            .values(**values)
            .returning(groups.c.id)
        )
        return (await self._scope.connection.execute(statement)).first() is not None

    async def request_deletion(self, group_id: UUID, now: datetime) -> None:
        """With all its partitions."""
        statement = (
            self._scope.update(groups)
            .where(_with_partitions(group_id), groups.c.status.not_in(("deleting", "deleted")))
            .values(status="deleting", delete_requested_at=now, row_version=groups.c.row_version + 1)
        )
        await self._scope.connection.execute(statement)

    async def finish_deletion(self, group_id: UUID, now: datetime) -> None:
        """With all its partitions."""
        statement = (
            self._scope.update(groups)
            .where(_with_partitions(group_id), groups.c.status == "deleting")
            .values(status="deleted", deleted_at=now, replicas=[], learners=[], row_version=groups.c.row_version + 1)
        )
        await self._scope.connection.execute(statement)

    async def begin_resize(self, group_id: UUID, wanted: dict[str, Any]) -> None:
        """`wanted`: revision, sla, demand and price, and the request `before` that it replaces. The caller holds the
        organization's lock."""
        statement = self._scope.update(groups).where(groups.c.id == group_id)
        await self._scope.connection.execute(statement.values(resize=wanted))

    async def finish_resize(self, group_id: UUID, revision: int, since: datetime) -> None:
        """Give the group its requested SLA as of `since`, and record the former one. A repetition changes nothing."""
        statement = self._scope.select(groups).where(groups.c.id == group_id).with_for_update()
        row = (await self._scope.connection.execute(statement)).one_or_none()
        if row is None or row.resize is None or row.resize["revision"] != revision:
            return
        wanted = row.resize
        if wanted["sla"] == row.sla:  # it called off another, and the price stays as it was agreed
            await self._scope.connection.execute(
                self._scope.update(groups).where(groups.c.id == group_id).values(sla_revision=revision, resize=None)
            )
            return
        former = {"group_id": group_id, "revision": row.sla_revision, "sla": row.sla, "until": since}
        former |= {"organization_id": row.organization_id, "hourly_micros": row.hourly_micros}
        await self._scope.connection.execute(self._scope.upsert(former_slas).values(former).on_conflict_do_nothing())
        await self._scope.connection.execute(
            self._scope.update(groups)
            .where(groups.c.id == group_id)
            .values(
                sla=wanted["sla"],
                demand=wanted["demand"],
                price=wanted["price"],
                hourly_micros=wanted["price"]["hourly_micros"],
                rate_per_s=wanted["sla"]["rate_per_s"],
                sla_revision=revision,
                resize=None,
                row_version=groups.c.row_version + 1,
            )
        )

    async def call_off_resize(self, group_id: UUID, revision: int) -> None:
        """Remove the request of a resize that did not happen. One that it was to replace goes on."""
        of_revision = cast(groups.c.resize["revision"].astext, BigInteger) == revision
        statement = self._scope.select(groups).where(groups.c.id == group_id, of_revision).with_for_update()
        row = (await self._scope.connection.execute(statement)).one_or_none()
        if row is not None:
            of_group = self._scope.update(groups).where(groups.c.id == group_id)
            await self._scope.connection.execute(of_group.values(resize=row.resize.get("before")))

    async def former_slas(self, group_id: UUID) -> list[Row[Any]]:
        """The group's former SLAs, oldest first."""
        statement = self._scope.select(former_slas).where(former_slas.c.group_id == group_id)
        return list((await self._scope.connection.execute(statement.order_by(former_slas.c.revision))).all())

    async def forget_intent(self, group_id: UUID) -> None:
        """Remove a group that was never admitted."""
        await self._scope.connection.execute(
            self._scope.delete(groups).where(groups.c.id == group_id, groups.c.status == "provisioning")
        )

    async def add_event(self, **values: object) -> None:
        assert isinstance(self._scope, Scope)
        statement = self._scope.upsert(group_events, **values).on_conflict_do_nothing()
        await self._scope.connection.execute(statement)

    async def since_lost(self, group_id: UUID, start: datetime, end: datetime) -> list[Row[Any]]:
        """Status changes and resets of the group since it was first lost in [start, end), oldest first.

        Empty if it was not."""
        events = group_events.c
        of_group = self._scope.select(group_events, events.at, events.kind, events.status)
        of_group = of_group.where(events.group_id == group_id)
        lost = of_group.where(events.status == "lost", events.at >= start, events.at < end)
        first = (await self._scope.connection.execute(lost.order_by(events.at).limit(1))).one_or_none()
        if first is None:
            return []
        since = of_group.where(events.at >= first.at, events.kind.in_(("group_status", "group_reset")))
        return list((await self._scope.connection.execute(since.order_by(events.at, events.seq))).all())

    async def events(self, group_id: UUID, limit: int, before: tuple[datetime, int] | None) -> list[Row[Any]]:
        statement = (
            self._scope.select(group_events)
            .where(group_events.c.group_id == group_id)
            .order_by(group_events.c.at.desc(), group_events.c.seq.desc())
            .limit(limit)
        )
        if before is not None:
            at, seq = before
            statement = statement.where(
                or_(group_events.c.at < at, (group_events.c.at == at) & (group_events.c.seq < seq))
            )
        return list((await self._scope.connection.execute(statement)).all())


def _with_partitions(group_id: UUID) -> ColumnElement[bool]:
    return or_(groups.c.id == group_id, groups.c.partition_of == group_id)


def _is_named(name: str) -> ColumnElement[bool]:
    if is_prefix(name):
        return groups.c.name.startswith(name[:-1], autoescape=True)
    return groups.c.name == name
