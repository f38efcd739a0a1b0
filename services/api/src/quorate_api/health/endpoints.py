"""`/v1/health` and `/v1/ready`: without a login, and without a transaction."""

from fastapi import APIRouter, Response

from quorate_api.health import service
from quorate_api.health.schemas import Health, Readiness
from quorate_api.http.principal import Environment

router = APIRouter(prefix="/v1", tags=["health"])


@router.get("/health")
async def get_health() -> Health:
    """The process is alive."""
    return Health(status="ok")


@router.get("/ready", responses={503: {"model": Readiness, "description": "PostgreSQL is missing."}})
async def get_readiness(services: Environment, response: Response) -> Readiness:
    """Every dependency with its state. 503 only when nothing works."""
    ready = await service.readiness(services.engine, services.redis, services.coordinator)
    response.status_code = 503 if ready.status == "unavailable" else 200
    return ready
