"""Webhooks of one organization, their secrets, and what is delivered to them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, any_, func, or_, select

from quorate_api.database.ids import new_id
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.database.tables import events, webhook_deliveries, webhook_secrets, webhooks
from quorate_api.webhooks.retries import Answer, Next, is_to_be_disabled

_DELIVERIES, _EVENTS, _SECRETS = webhook_deliveries.c, events.c, webhook_secrets.c


class WebhookRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def insert(self, **values: object) -> None:
        await self._scope.connection.execute(self._scope.insert(webhooks, **values))

    async def count(self) -> int:
        return int((await self._scope.connection.execute(self._scope.select(webhooks, func.count()))).scalar_one())

    async def page(self, limit: int, before: UUID | None) -> list[Row[Any]]:
        """Newest first."""
        statement = self._scope.select(webhooks).order_by(webhooks.c.id.desc()).limit(limit)
        if before is not None:
            statement = statement.where(webhooks.c.id < before)
        return list((await self._scope.connection.execute(statement)).all())

    async def get(self, webhook_id: UUID, *, lock: bool = False) -> Row[Any] | None:
        statement = self._scope.select(webhooks).where(webhooks.c.id == webhook_id)
        if lock:
            statement = statement.with_for_update()
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def update(self, webhook_id: UUID, **values: object) -> None:
        statement = self._scope.update(webhooks).where(webhooks.c.id == webhook_id)
        await self._scope.connection.execute(statement.values(**values, row_version=webhooks.c.row_version + 1))

    async def delete(self, webhook_id: UUID) -> None:
        """With its secrets and deliveries."""
        await self._scope.connection.execute(self._scope.delete(webhooks).where(webhooks.c.id == webhook_id))


class WebhookSecretRepository:
    """The worker uses it too, with the view of every organization."""

    def __init__(self, scope: Scope | EveryOrganization) -> None:
        self._scope = scope

    async def insert(self, **values: object) -> None:
        assert isinstance(self._scope, Scope)
        await self._scope.connection.execute(self._scope.insert(webhook_secrets, **values))

    async def of(self, webhook_ids: Iterable[UUID]) -> dict[UUID, list[Row[Any]]]:
        """By webhook, newest first."""
        statement = (
            self._scope.select(webhook_secrets)
            .where(_SECRETS.webhook_id.in_(list(webhook_ids)))
            .order_by(_SECRETS.created_at.desc(), _SECRETS.id.desc())
        )
        found: dict[UUID, list[Row[Any]]] = {}
        for row in (await self._scope.connection.execute(statement)).all():
            found.setdefault(row.webhook_id, []).append(row)
        return found

    async def end(self, webhook_id: UUID, at: datetime, now: datetime) -> None:
        """No secret of the webhook signs from then on. Ended ones are removed."""
        ended = self._scope.delete(webhook_secrets).where(_SECRETS.webhook_id == webhook_id, _SECRETS.ends_at <= now)
        await self._scope.connection.execute(ended)
        still = or_(_SECRETS.ends_at.is_(None), _SECRETS.ends_at > at)
        statement = self._scope.update(webhook_secrets).where(_SECRETS.webhook_id == webhook_id, still)
        await self._scope.connection.execute(statement.values(ends_at=at))


class DeliveryRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def page(self, webhook_id: UUID, limit: int, before: int | None, status: str | None) -> list[Row[Any]]:
        """Newest event first, each with its event's id, type and time. `before`: an event's number."""
        statement = self._shown().where(_DELIVERIES.webhook_id == webhook_id)
        if before is not None:
            statement = statement.where(_DELIVERIES.event_seq < before)
        if status is not None:
            statement = statement.where(_DELIVERIES.status == status)
        statement = statement.order_by(_DELIVERIES.event_seq.desc()).limit(limit)
        return list((await self._scope.connection.execute(statement)).all())

    async def get(self, webhook_id: UUID, delivery_id: UUID) -> Row[Any] | None:
        statement = self._shown().where(_DELIVERIES.webhook_id == webhook_id, _DELIVERIES.id == delivery_id)
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def of_event(self, webhook_id: UUID, event_seq: int) -> Row[Any]:
        statement = self._shown().where(_DELIVERIES.webhook_id == webhook_id, _DELIVERIES.event_seq == event_seq)
        return (await self._scope.connection.execute(statement)).one()

    async def resend(self, delivery_ids: Iterable[UUID], now: datetime) -> None:
        """Attempts are counted anew."""
        statement = self._scope.update(webhook_deliveries).where(_DELIVERIES.id.in_(list(delivery_ids)))
        await self._scope.connection.execute(statement.values(status="waiting", attempts=0, next_at=now))

    async def add(self, webhook_id: UUID, event_seqs: Iterable[int], now: datetime) -> None:
        rows = [
            {
                "id": new_id(),
                "webhook_id": webhook_id,
                "event_seq": seq,
                "status": "waiting",
                "attempts": 0,
                "next_at": now,
                "created_at": now,
            }
            for seq in event_seqs
        ]
        if rows:
            statement = self._scope.upsert(webhook_deliveries).on_conflict_do_nothing()
            await self._scope.connection.execute(statement, rows)

    async def undelivered(
        self, webhook_id: UUID, types: list[str], since: datetime, ended: tuple[str, ...], limit: int
    ) -> list[Row[Any]]:
        """Events since then that the webhook is to have, oldest first. Their delivery is in one of the states `ended`,
        or there is none: its id is then None."""
        of_webhook = (_DELIVERIES.event_seq == _EVENTS.seq) & (_DELIVERIES.webhook_id == webhook_id)
        statement = (
            self._scope.select(events, _EVENTS.seq, _EVENTS.at, _DELIVERIES.id)
            .outerjoin(webhook_deliveries, of_webhook)
            .where(_EVENTS.at >= since, _EVENTS.for_webhook_id.is_(None), _EVENTS.dispatched_at.is_not(None))
            .where(or_(_DELIVERIES.id.is_(None), _DELIVERIES.status.in_(ended)))
            .order_by(_EVENTS.at, _EVENTS.seq)
            .limit(limit)
        )
        if types:
            statement = statement.where(_EVENTS.type.in_(types))
        return list((await self._scope.connection.execute(statement)).all())

    def _shown(self) -> Any:
        about = (_EVENTS.id.label("event_id"), _EVENTS.type.label("event_type"), _EVENTS.at.label("event_at"))
        of_event = (_EVENTS.seq == _DELIVERIES.event_seq) & (_EVENTS.organization_id == _DELIVERIES.organization_id)
        return self._scope.select(webhook_deliveries, webhook_deliveries, *about).join(events, of_event)


class DispatchRepository:
    """Deliveries of all organizations, for the worker."""

    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def dispatch(self, now: datetime, limit: int) -> int:
        """Give new events to the webhooks that are to have them. Returns the number of events."""
        waiting = self._scope.select(events, _EVENTS.seq).where(_EVENTS.dispatched_at.is_(None))
        waiting = waiting.order_by(_EVENTS.seq).limit(limit).with_for_update(skip_locked=True)
        seqs = list((await self._scope.connection.execute(waiting)).scalars())
        if not seqs:
            return 0
        chosen = webhooks.c.event_types
        of_events = (
            self._scope.select(events, _EVENTS.seq, _EVENTS.organization_id, webhooks.c.id.label("webhook_id"))
            .join(webhooks, webhooks.c.organization_id == _EVENTS.organization_id)
            .where(
                _EVENTS.seq.in_(seqs),
                or_(
                    _EVENTS.for_webhook_id == webhooks.c.id,
                    and_(
                        _EVENTS.for_webhook_id.is_(None),
                        webhooks.c.status == "enabled",
                        webhooks.c.created_at <= _EVENTS.at,
                        or_(func.cardinality(chosen) == 0, _EVENTS.type == any_(chosen)),
                    ),
                ),
            )
            .order_by(_EVENTS.seq)
        )
        rows = [
            {"id": new_id(), "organization_id": row.organization_id, "webhook_id": row.webhook_id,
             "event_seq": row.seq, "status": "waiting", "attempts": 0, "next_at": now, "created_at": now}
            for row in (await self._scope.connection.execute(of_events)).all()
        ]  # fmt: skip
        if rows:
            statement = self._scope.upsert(webhook_deliveries).values(rows).on_conflict_do_nothing()
            await self._scope.connection.execute(statement)
        done = self._scope.update(events).where(_EVENTS.seq.in_(seqs)).values(dispatched_at=now)
        await self._scope.connection.execute(done)
        return len(seqs)

    async def take(
        self, now: datetime, until: datetime, limit: int, *, per_organization: int, busy: Iterable[UUID]
    ) -> list[Row[Any]]:
        """Deliveries that are due, at most so many of each organization, and none of `busy` ones.

        Nobody else takes one before `until`, by when the attempt is over.
        """
        order = func.row_number().over(partition_by=_DELIVERIES.organization_id, order_by=_DELIVERIES.next_at)
        ranked = (
            self._scope.select(webhook_deliveries, _DELIVERIES.id, _DELIVERIES.next_at, order.label("place"))
            .where(
                _DELIVERIES.status == "waiting",
                _DELIVERIES.next_at <= now,
                _DELIVERIES.organization_id.not_in(list(busy)),
            )
            .subquery()
        )
        due = select(ranked.c.id).where(ranked.c.place <= per_organization).order_by(ranked.c.next_at).limit(limit)
        taken = (
            self._scope.update(webhook_deliveries)
            .where(_DELIVERIES.id.in_(due), _DELIVERIES.status == "waiting", _DELIVERIES.next_at <= now)
            .values(next_at=until, attempts=_DELIVERIES.attempts + 1)
            .returning(webhook_deliveries)
        )
        return list((await self._scope.connection.execute(taken)).all())

    async def parcel(self, delivery: Row[Any]) -> tuple[Row[Any], Row[Any]] | None:
        """The webhook and the event. None: the webhook is gone."""
        webhook = self._scope.select(webhooks).where(webhooks.c.id == delivery.webhook_id)
        event = self._scope.select(events).where(_EVENTS.seq == delivery.event_seq)
        found = (await self._scope.connection.execute(webhook)).one_or_none()
        about = (await self._scope.connection.execute(event)).one_or_none()
        return None if found is None or about is None else (found, about)

    async def note(self, delivery_id: UUID, answer: Answer, following: Next, now: datetime) -> None:
        values = {
            "status": following.status,
            "next_at": following.at,
            "last_at": now,
            "last_http_status": answer.http_status,
            "last_error": answer.error,
            "last_duration_ms": answer.duration_ms,
        }
        statement = self._scope.update(webhook_deliveries).where(_DELIVERIES.id == delivery_id).values(**values)
        await self._scope.connection.execute(statement)

    async def note_health(self, webhook_id: UUID, answer: Answer, now: datetime) -> None:
        """A received event ends a time of failures; a failure begins one, or ends the webhook."""
        found = self._scope.select(webhooks).where(webhooks.c.id == webhook_id).with_for_update()
        row = (await self._scope.connection.execute(found)).one_or_none()
        if row is None or (answer.is_received and row.failing_since is None):
            return
        values: dict[str, Any] = {"failing_since": None if answer.is_received else row.failing_since or now}
        if row.status == "enabled" and is_to_be_disabled(answer, row.failing_since, now):
            values |= {"status": "disabled", "updated_at": now, "row_version": webhooks.c.row_version + 1}
        statement = self._scope.update(webhooks).where(webhooks.c.id == webhook_id).values(**values)
        await self._scope.connection.execute(statement)
