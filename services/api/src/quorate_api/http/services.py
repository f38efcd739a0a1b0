"""What one API process has: made once at start, handed to requests as `request.app.state.services`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import Request
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.coordinator.client import Coordinator
from quorate_api.http.rates import Rates
from quorate_api.security.keys import Keys
from quorate_api.security.operator_tokens import OperatorTokens
from quorate_api.security.passwords import Passwords
from quorate_api.security.tokens import TokenSigner
from quorate_api.settings import Settings

if TYPE_CHECKING:
    from quorate_api.live.hub import Hub


@dataclass(slots=True)
class Services:
    settings: Settings
    engine: AsyncEngine
    redis: Redis | None
    coordinator: Coordinator
    keys: Keys
    passwords: Passwords
    signer: TokenSigner
    operators: OperatorTokens
    rates: Rates
    hub: "Hub"


def services_of(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services
