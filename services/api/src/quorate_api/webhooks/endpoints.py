"""`/v1/webhooks`."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Response

from quorate_api.http.pagination import PageParameters
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.http.schemas import Page
from quorate_api.webhooks import service
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

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=ScopedRoute)

OfStatus = Annotated[
    Literal["waiting", "delivered", "failed"] | None, Query(alias="status", description="Only deliveries in it.")
]


@router.get("")
async def list_webhooks(work: Transaction, caller: Caller, paging: PageParameters) -> Page[Webhook]:
    """The organization's webhooks, newest first, without their secrets."""
    return await service.page(work, caller, paging)


@router.post("", status_code=201)
async def create_webhook(asked: NewWebhook, work: Transaction, services: Environment, caller: Caller) -> CreatedWebhook:
    """Have events sent to a URL, signed after Standard Webhooks. The secret is in this answer only."""
    return await service.create(work, services, caller, asked)


@router.get("/{webhook_id}")
async def get_webhook(webhook_id: UUID, work: Transaction, caller: Caller) -> Webhook:
    """One webhook."""
    return await service.get(work, caller, webhook_id)


@router.put("/{webhook_id}")
async def change_webhook(
    webhook_id: UUID, asked: ChangedWebhook, work: Transaction, services: Environment, caller: Caller
) -> Webhook:
    """Change where events go, which, and whether. It also enables a webhook that the service has disabled."""
    return await service.change(work, services, caller, webhook_id, asked)


@router.delete("/{webhook_id}", status_code=204)
async def delete_webhook(webhook_id: UUID, work: Transaction, caller: Caller) -> Response:
    """Delete a webhook. Waiting events are not sent."""
    await service.delete(work, caller, webhook_id)
    return Response(status_code=204)


@router.post("/{webhook_id}/rotate")
async def rotate_webhook_secret(
    webhook_id: UUID, asked: SecretRotation, work: Transaction, services: Environment, caller: Caller
) -> RotatedSecret:
    """Give a webhook another secret. Meanwhile both sign, so that no delivery is refused."""
    return await service.rotate(work, services, caller, webhook_id, asked)


@router.post("/{webhook_id}/test", status_code=202)
async def test_webhook(webhook_id: UUID, work: Transaction, services: Environment, caller: Caller) -> Delivery:
    """Send an event of the type `webhook.test`. The list of deliveries tells within seconds how it went."""
    return await service.test(work, services, caller, webhook_id)


@router.get("/{webhook_id}/deliveries")
async def list_webhook_deliveries(
    webhook_id: UUID, work: Transaction, caller: Caller, paging: PageParameters, status: OfStatus = None
) -> Page[Delivery]:
    """Deliveries of the last 30 days, newest first."""
    return await service.deliveries(work, caller, webhook_id, paging, status)


@router.post("/{webhook_id}/deliveries/{delivery_id}/resend", status_code=202)
async def resend_webhook_delivery(webhook_id: UUID, delivery_id: UUID, work: Transaction, caller: Caller) -> Delivery:
    """Send an event again, with the same `webhook-id`."""
    return await service.resend(work, caller, webhook_id, delivery_id)


@router.post("/{webhook_id}/replay", status_code=202)
async def replay_webhook(webhook_id: UUID, asked: Replay, work: Transaction, caller: Caller) -> Replayed:
    """Send events again that failed, or that came while the webhook was paused or disabled."""
    return await service.replay(work, caller, webhook_id, asked)
