"""`/v1/password/…` for who is not logged in, `/v1/me/password` for who is."""

from fastapi import APIRouter, Request, Response

from quorate_api.http.client import client_of
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import PublicRoute, ScopedRoute
from quorate_api.passwords import service
from quorate_api.passwords.schemas import Change, Reset, ResetRequest

public = APIRouter(prefix="/v1/password", tags=["accounts"], route_class=PublicRoute)
router = APIRouter(prefix="/v1/me", tags=["accounts"], route_class=ScopedRoute)


@public.post("/reset-requests", status_code=202)
async def request_password_reset(
    asked: ResetRequest, request: Request, work: Transaction, services: Environment
) -> Response:
    """Have a link mailed that sets a new password. The answer is the same for every address."""
    await service.request_reset(work, services, asked, client_of(request))
    return Response(status_code=202)


@public.post("/reset", status_code=204)
async def reset_password(asked: Reset, request: Request, work: Transaction, services: Environment) -> Response:
    """Set a new password by the link in the mail. All sessions end."""
    await service.reset(work, services, asked, client_of(request))
    return Response(status_code=204)


@router.post("/password", status_code=204)
async def change_password(
    asked: Change, request: Request, work: Transaction, services: Environment, caller: Caller
) -> Response:
    """Change the password. Other sessions end."""
    await service.change(work, services, caller, asked, client_of(request))
    return Response(status_code=204)
