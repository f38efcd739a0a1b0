"""The services of one API process, created once at start. Requests find them as `request.app.state.services`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fastapi import Request, Response
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.checkout.port import Provider
from quorate_api.coordinator.client import Coordinator
from quorate_api.database.work import Work
from quorate_api.errors import Problem
from quorate_api.held import Held
from quorate_api.http.known_keys import KnownKeys
from quorate_api.http.rates import Rates
from quorate_api.openid.providers import Providers
from quorate_api.press import Press
from quorate_api.readers import Readers
from quorate_api.security.keys import Keys
from quorate_api.security.passwords import Passwords
from quorate_api.security.staff_tokens import Staff, StaffTokens
from quorate_api.security.tokens import TokenSigner
from quorate_api.settings import Settings
from quorate_api.telemetry.hub import Hub
from quorate_api.telemetry.viewers import Viewers

# Raises where a reservation in the project that costs so much more an hour does not fit below the spend caps.
RequireRoom = Callable[[Work, UUID, int], Awaitable[None]]


# Writes a change that a request has made into the audit log, in the transaction of the change.
RecordChange = Callable[[Request, Work, Response], Awaitable[None]]


# Notes a request that was refused, in a transaction of its own.
RecordRefusal = Callable[[Request, Problem], Awaitable[None]]


@dataclass(slots=True)
class Services:
    settings: Settings
    engine: AsyncEngine
    redis: Redis | None
    coordinator: Coordinator
    keys: Keys
    passwords: Passwords
    signer: TokenSigner
    staff: dict[Staff, StaffTokens]
    rates: Rates
    known_keys: KnownKeys
    hub: Hub
    viewers: Viewers
    readers: Readers
    press: Press
    payments: Provider
    providers: Providers
    # Of resources above this package.
    status: Held[Any]  # a snapshot of the public status
    require_spend_room: RequireRoom
    record_change: RecordChange
    record_refusal: RecordRefusal


def services_of(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services
