"""Webhooks of the caller's organization: who may see the audit log and the invoices may send them elsewhere."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits, networks
from quorate_api.access.permissions import Permission
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, invalid, not_found
from quorate_api.events.catalogue import EventType, WebhookTest
from quorate_api.events.message import message_id
from quorate_api.events.repository import EventRepository
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.http.services import Services
from quorate_api.quotas import service as quotas
from quorate_api.webhooks import secrets
from quorate_api.webhooks.repository import DeliveryRepository, WebhookRepository, WebhookSecretRepository
from quorate_api.webhooks.schemas import (
    ChangedWebhook,
    CreatedWebhook,
    Delivery,
    NewWebhook,
    Replay,
    Replayed,
    RotatedSecret,
    SecretRotation,
    Webhook,
)


async def create(work: Work, services: Services, principal: Principal, asked: NewWebhook) -> CreatedWebhook:
    _require(principal)
    principal.require_confirmed()
    _require_sendable(services, asked.url)
    await quotas.lock(work)
    repository = WebhookRepository(work.scope)
    if await repository.count() >= limits.WEBHOOKS_MAX:
        raise Problem(Code.QUOTA_EXCEEDED, f"An organization has at most {limits.WEBHOOKS_MAX} webhooks.")
    now, webhook_id = datetime.now(UTC), new_id()
    values = _values(asked) | {"status": "enabled", "created_at": now, "updated_at": now}
    await repository.insert(id=webhook_id, **values)
    secret = await _add_secret(work, services, webhook_id, now)
    return CreatedWebhook(id=webhook_id, **values, failing_since=None, former_secret_until=None, secret=secret)


async def page(work: Work, principal: Principal, paging: Paging) -> Page[Webhook]:
    _require(principal)
    rows = await WebhookRepository(work.scope).page(paging.limit + 1, paging.after_id)
    rows, cursor = paging.cut(rows)
    return Page(items=await _shown(work, rows), next_cursor=cursor)


async def get(work: Work, principal: Principal, webhook_id: UUID) -> Webhook:
    return (await _shown(work, [await _visible(work, principal, webhook_id)]))[0]


async def change(
    work: Work, services: Services, principal: Principal, webhook_id: UUID, asked: ChangedWebhook
) -> Webhook:
    await _visible(work, principal, webhook_id, lock=True)
    principal.require_confirmed()
    _require_sendable(services, asked.url)
    values = _values(asked) | {"status": asked.status, "failing_since": None, "updated_at": datetime.now(UTC)}
    await WebhookRepository(work.scope).update(webhook_id, **values)
    return await get(work, principal, webhook_id)


async def delete(work: Work, principal: Principal, webhook_id: UUID) -> None:
    await _visible(work, principal, webhook_id, lock=True)
    principal.require_confirmed()
    await WebhookRepository(work.scope).delete(webhook_id)


async def rotate(
    work: Work, services: Services, principal: Principal, webhook_id: UUID, asked: SecretRotation
) -> RotatedSecret:
    await _visible(work, principal, webhook_id, lock=True)
    principal.require_confirmed()
    now = datetime.now(UTC)
    repository = WebhookSecretRepository(work.scope)
    known = (await repository.of([webhook_id])).get(webhook_id, [])
    if asked.grace_s > 0 and sum(_signs(each, now) for each in known) >= limits.SECRETS_PER_KEY_MAX:
        raise Problem(
            Code.QUOTA_EXCEEDED,
            f"{limits.SECRETS_PER_KEY_MAX} secrets of the webhook sign at this time. Wait until one of them ends, or "
            "rotate with `grace_s` 0, which ends all others.",
        )
    until = now + timedelta(seconds=asked.grace_s)
    await repository.end(webhook_id, until, now)
    secret = await _add_secret(work, services, webhook_id, now)
    return RotatedSecret(id=webhook_id, secret=secret, former_secret_until=until)


async def test(work: Work, services: Services, principal: Principal, webhook_id: UUID) -> Delivery:
    """Send an event of the type `webhook.test` to this webhook alone."""
    await _visible(work, principal, webhook_id)
    await services.rates.webhook_test(str(principal.organization_id))
    events, now, key = EventRepository(work.scope), datetime.now(UTC), str(new_id())
    data = WebhookTest(webhook_id=webhook_id)
    await events.add(principal.organization_id, EventType.WEBHOOK_TEST, key, data, now, for_webhook_id=webhook_id)
    event = await events.of_key(EventType.WEBHOOK_TEST, key)
    deliveries = DeliveryRepository(work.scope)
    await deliveries.add(webhook_id, [event.seq], now)
    return _delivery(await deliveries.of_event(webhook_id, event.seq))


async def deliveries(
    work: Work, principal: Principal, webhook_id: UUID, paging: Paging, status: str | None
) -> Page[Delivery]:
    await _visible(work, principal, webhook_id)
    rows = await DeliveryRepository(work.scope).page(webhook_id, paging.limit + 1, paging.after_number, status)
    rows, cursor = paging.cut(rows, lambda row: row.event_seq)
    return Page(items=[_delivery(row) for row in rows], next_cursor=cursor)


async def resend(work: Work, principal: Principal, webhook_id: UUID, delivery_id: UUID) -> Delivery:
    await _visible(work, principal, webhook_id)
    repository = DeliveryRepository(work.scope)
    row = await repository.get(webhook_id, delivery_id)
    if row is None:
        raise not_found("delivery")
    await repository.resend([delivery_id], datetime.now(UTC))
    row = await repository.get(webhook_id, delivery_id)
    assert row is not None, "it was read in this transaction"
    return _delivery(row)


async def replay(work: Work, principal: Principal, webhook_id: UUID, asked: Replay) -> Replayed:
    """Send events again: those that failed or passed the webhook by, and on request those that it has."""
    webhook = await _visible(work, principal, webhook_id)
    repository, now = DeliveryRepository(work.scope), datetime.now(UTC)
    ended = ("failed",) if asked.only_failed else ("failed", "delivered")
    found = await repository.undelivered(
        webhook_id, webhook.event_types, asked.since, ended, limits.WEBHOOK_REPLAY_MAX + 1
    )
    some, rest = found[: limits.WEBHOOK_REPLAY_MAX], found[limits.WEBHOOK_REPLAY_MAX :]
    await repository.resend([row.id for row in some if row.id is not None], now)
    await repository.add(webhook_id, [row.seq for row in some if row.id is None], now)
    return Replayed(count=len(some), next_since=rest[0].at if rest else None)


def _require(principal: Principal) -> None:
    principal.require(Permission.ADMINISTER)
    principal.require_whole_organization()


def _require_sendable(services: Services, url: str) -> None:
    """Raises `validation_failed` where each delivery would fail. Names are looked up when something is sent."""
    allowed = networks.parse_networks(services.settings.webhook_networks)
    address = networks.literal(urlsplit(url).hostname or "")
    if address is not None and not networks.may_send_to(address, allowed):
        raise invalid("url", "Leads into a private network. Give an address that the public internet reaches.")
    if url.startswith("http:") and not allowed:
        raise invalid("url", "Must begin with https://: events are not sent in the clear.")


async def _visible(work: Work, principal: Principal, webhook_id: UUID, *, lock: bool = False) -> Row[Any]:
    _require(principal)
    row = await WebhookRepository(work.scope).get(webhook_id, lock=lock)
    if row is None:
        raise not_found("webhook")
    return row


async def _add_secret(work: Work, services: Services, webhook_id: UUID, now: datetime) -> str:
    secret, secret_id = secrets.generate(), new_id()
    sealed = secrets.sealed(services.keys, secret_id, secret)
    await WebhookSecretRepository(work.scope).insert(
        id=secret_id, webhook_id=webhook_id, sealed=sealed, created_at=now, ends_at=None
    )
    return secret


def _values(asked: NewWebhook) -> dict[str, Any]:
    return {
        "url": asked.url,
        "description": asked.description,
        "event_types": sorted({kind.value for kind in asked.event_types}),
    }


async def _shown(work: Work, rows: list[Row[Any]]) -> list[Webhook]:
    now = datetime.now(UTC)
    known = await WebhookSecretRepository(work.scope).of([row.id for row in rows])
    found = []
    for row in rows:
        ends = [each.ends_at for each in known.get(row.id, []) if each.ends_at is not None and _signs(each, now)]
        values = {name: getattr(row, name) for name in Webhook.model_fields if name != "former_secret_until"}
        found.append(Webhook(**values, former_secret_until=max(ends, default=None)))
    return found


def _signs(secret: Row[Any], now: datetime) -> bool:
    return secret.ends_at is None or secret.ends_at > now


def _delivery(row: Row[Any]) -> Delivery:
    values = {name: getattr(row, name) for name in Delivery.model_fields if name != "event_id"}
    return Delivery(**values, event_id=message_id(row.event_id))
