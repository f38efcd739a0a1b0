"""`/v1/quotes`."""

from fastapi import APIRouter

from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.quotes import service
from quorate_api.quotes.schemas import QuoteAnswer, QuoteRequest

router = APIRouter(prefix="/v1/quotes", tags=["groups"], route_class=ScopedRoute)


@router.post("")
async def create_quote(asked: QuoteRequest, work: Transaction, services: Environment, caller: Caller) -> QuoteAnswer:
    """Price an SLA, and check whether the fleet can promise it now. Nothing is reserved."""
    return await service.create(work, services, caller, asked)
