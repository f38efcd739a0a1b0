"""Webhooks and their deliveries."""

from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from quorate_api import limits
from quorate_api.events.catalogue import CHOSEN, EventType
from quorate_api.http.schemas import Input, Output, printable


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("is no URL") from None
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise ValueError("must be an address as in https://example.com/quorate")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a password: each delivery is signed, and the receiver checks that")
    if parts.fragment or not text.isascii() or any(each.isspace() for each in text):
        raise ValueError("must be ASCII, without spaces and without a fragment")
    return text


def _chosen(kind: EventType) -> EventType:
    if kind not in CHOSEN:
        raise ValueError("is sent on request alone")
    return kind


Url = Annotated[str, StringConstraints(min_length=1, max_length=limits.WEBHOOK_URL_LENGTH_MAX), AfterValidator(_url)]
Description = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=limits.NAME_LENGTH_MAX),
    AfterValidator(printable),
]
Chosen = Annotated[EventType, Field(strict=False), AfterValidator(_chosen)]


class NewWebhook(Input):
    url: Url = Field(description="https, reachable from the public internet.", examples=["https://example.com/quorate"])
    description: Description = ""
    event_types: list[Chosen] = Field(
        default_factory=list, max_length=len(EventType), description="Only events of these types; empty: of all."
    )


class ChangedWebhook(NewWebhook):
    status: Literal["enabled", "paused"] = Field(
        "enabled", description="While it is paused, events pass it by; `replay` sends them afterwards."
    )


class Webhook(Output):
    id: UUID
    url: str
    description: str
    event_types: list[EventType] = Field(description="Empty: all.")
    status: Literal["enabled", "paused", "disabled"] = Field(
        description="disabled: by the service, as the receiver answered 410, or nothing useful for five days."
    )
    failing_since: datetime | None = Field(description="Its last deliveries failed, from then on; else null.")
    former_secret_until: datetime | None = Field(description="Until then both secrets sign; null: one does.")
    created_at: datetime
    updated_at: datetime


class CreatedWebhook(Webhook):
    secret: str = Field(description="For checking signatures, `whsec_…`. It is shown only now.")


class SecretRotation(Input):
    grace_s: int = Field(
        limits.ROTATION_GRACE_S,
        ge=0,
        le=limits.ROTATION_GRACE_S_MAX,
        description="For so long the former secret signs, too.",
    )


class RotatedSecret(Output):
    id: UUID
    secret: str = Field(description="The new secret. It is shown only now.")
    former_secret_until: datetime


class Delivery(Output):
    id: UUID
    event_id: str = Field(description="The header `webhook-id`.")
    event_type: EventType
    event_at: datetime
    status: Literal["waiting", "delivered", "failed"]
    attempts: int
    next_at: datetime | None = Field(description="The time of the next attempt; null unless it waits.")
    last_at: datetime | None
    last_http_status: int | None
    last_error: str | None = Field(description="Why the last attempt failed, for people; null if it did not.")
    last_duration_ms: int | None


class Replay(Input):
    since: Annotated[AwareDatetime, Field(strict=False)] = Field(
        description="Events from then on are sent again, as far as they are kept: 30 days."
    )
    only_failed: bool = Field(True, description="false: those that were delivered, too.")


class Replayed(Output):
    count: int = Field(description="The number of events that wait to be sent.")
    next_since: datetime | None = Field(
        description="One call sends so many: ask again with this `since`; null: all do."
    )
