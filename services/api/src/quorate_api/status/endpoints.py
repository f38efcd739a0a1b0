"""`/v1/status`, for everybody, and `/v1/operator/incidents`."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response

from quorate_api import limits
from quorate_api.http.address import client_address
from quorate_api.http.principal import Environment, Transaction
from quorate_api.http.route import OperatorRoute
from quorate_api.status import service
from quorate_api.status.feed import MEDIA_TYPE
from quorate_api.status.schemas import Incident, NewIncident, NewUpdate, Status

# Not a `PublicRoute`, which begins a transaction: the status is answered without a database too.
public = APIRouter(prefix="/v1/status", tags=["status"])
operator = APIRouter(prefix="/v1/operator/incidents", tags=["operator"], route_class=OperatorRoute)


async def _counted(request: Request, response: Response, services: Environment) -> dict[str, str]:
    """Count the request to its address. Returns the answer's headers, and sets them where a body is an object."""
    standing = await services.rates.status(client_address(request, services.settings.trusted_proxies))
    headers = standing.headers() | {"Cache-Control": f"public, max-age={limits.STATUS_CACHED_S}"}
    response.headers.update(headers)
    return headers


Headers = Annotated[dict[str, str], Depends(_counted)]


@public.get("")
async def get_status(services: Environment, _: Headers) -> Status:
    """The state of each region's components, their last 90 days, and incidents. It needs no login."""
    return await service.status(services)


@public.get(
    "/feed", response_class=Response, responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}}
)
async def get_status_feed(services: Environment, headers: Headers) -> Response:
    """Incidents as an Atom feed."""
    return Response(await service.atom(services), media_type=MEDIA_TYPE, headers=headers)


@public.get("/incidents/{incident_id}")
async def get_incident(incident_id: UUID, services: Environment, _: Headers) -> Incident:
    """One incident, however old."""
    return await service.incident(services, incident_id)


@operator.post("", status_code=201)
async def open_incident(asked: NewIncident, work: Transaction, services: Environment) -> Incident:
    """Tell the public of an incident. It is on the status page within seconds, and stays on record."""
    return await service.open_incident(work, services, asked)


@operator.post("/{incident_id}/updates", status_code=201)
async def update_incident(incident_id: UUID, asked: NewUpdate, work: Transaction, services: Environment) -> Incident:
    """Add to an incident's timeline, or resolve it. Nothing of the timeline changes afterwards."""
    return await service.update_incident(work, services, incident_id, asked)
