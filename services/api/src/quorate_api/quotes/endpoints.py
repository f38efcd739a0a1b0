"""`/v1/quotes`."""

from fastapi import APIRouter

from quorate_api.groups import service as groups
from quorate_api.http.principal import Caller, Environment, Permission, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.quotes import service
from quorate_api.quotes.schemas import QuoteAnswer, QuoteRequest

router = APIRouter(prefix="/v1/quotes", tags=["groups"], route_class=ScopedRoute)


@router.post("")
async def create_quote(asked: QuoteRequest, work: Transaction, services: Environment, caller: Caller) -> QuoteAnswer:
    """Price an SLA and ask whether the fleet can promise it now. Nothing is reserved."""
    caller.require(Permission.MANAGE)
    if asked.replaces_group_id is not None:
        await groups.visible(work, caller, asked.replaces_group_id)
    return service.answer(await service.ask(work, services, asked.sla(), asked.replaces_group_id))
