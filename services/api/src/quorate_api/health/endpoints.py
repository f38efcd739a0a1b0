"""`/v1/health` and `/v1/ready`: without a login, and without a transaction."""

from fastapi import APIRouter, Request, Response

from quorate_api.health import service
from quorate_api.health.schemas import Health, Readiness
from quorate_api.http import staff
from quorate_api.http.principal import Environment
from quorate_api.http.services import Services

router = APIRouter(prefix="/v1", tags=["health"])


@router.get("/health")
async def get_health() -> Health:
    """The process is alive."""
    return Health(status="ok")


@router.get("/ready", responses={503: {"model": Readiness, "description": "PostgreSQL is missing."}})
async def get_readiness(services: Environment, request: Request, response: Response) -> Readiness:
    """Whether requests can be served; 503 only when none can. Operators see each dependency's state, too."""
    ready = await service.readiness(services.engine, services.redis, services.coordinator)
    response.status_code = 503 if ready.status == "unavailable" else 200
    return ready if _is_operator(request, services) else Readiness(status=ready.status)


def _is_operator(request: Request, services: Services) -> bool:
    if "authorization" not in request.headers:
        return False
    staff.authenticate(request, "operator")
    return True
