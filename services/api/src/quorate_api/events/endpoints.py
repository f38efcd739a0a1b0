"""`/v1/events`."""

from typing import Annotated

from fastapi import APIRouter, Query

from quorate_api.events import service
from quorate_api.events.catalogue import EventType
from quorate_api.events.schemas import ListedEvent
from quorate_api.http.pagination import PageParameters
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.http.schemas import Page

router = APIRouter(prefix="/v1/events", tags=["webhooks"], route_class=ScopedRoute)

OfType = Annotated[EventType | None, Query(alias="type", description="Only events of this type.")]


@router.get("")
async def list_events(
    work: Transaction, caller: Caller, paging: PageParameters, of_type: OfType = None
) -> Page[ListedEvent]:
    """Events of the last 30 days, as webhooks get them, newest first. For receivers that no webhook reaches."""
    return await service.page(work, caller, paging, of_type)
