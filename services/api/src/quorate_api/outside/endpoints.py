"""`/v1/prober`: for processes that look at the fleet from where clients are."""

from fastapi import APIRouter

from quorate_api.http.principal import Environment, Transaction
from quorate_api.http.route import ProberRoute
from quorate_api.outside import service
from quorate_api.outside.schemas import Looked, Taken, Targets

router = APIRouter(prefix="/v1/prober", tags=["prober"], route_class=ProberRoute)


@router.get("/targets")
async def get_probe_targets(work: Transaction, services: Environment) -> Targets:
    """The servers to knock at, and the authority of their certificates."""
    return await service.targets(work, services)


@router.post("/minutes")
async def add_probed_minutes(looked: Looked, work: Transaction) -> Taken:
    """Tell what was seen in minutes that are over. Telling a minute again changes nothing."""
    return await service.take(work, looked)
