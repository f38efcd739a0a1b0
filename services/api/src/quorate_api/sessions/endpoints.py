"""`/v1/me/sessions`, `/v1/me/confirm`."""

from uuid import UUID

from fastapi import APIRouter, Request, Response

from quorate_api.http.client import client_of
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.identities import cookie
from quorate_api.sessions import service
from quorate_api.sessions.schemas import Confirmation, Sessions

router = APIRouter(prefix="/v1/me", tags=["accounts"], route_class=ScopedRoute)


@router.get("/sessions")
async def list_sessions(work: Transaction, caller: Caller) -> Sessions:
    """The person's sessions in all organizations, the one used last first."""
    return await service.all_of(work, caller)


@router.delete("/sessions", status_code=204)
async def end_other_sessions(work: Transaction, caller: Caller) -> Response:
    """End all sessions of the person except the present one."""
    await service.end_others(work, caller)
    return Response(status_code=204)


@router.delete("/sessions/{session_id}", status_code=204)
async def end_session(session_id: UUID, work: Transaction, caller: Caller) -> Response:
    """End one session of the person."""
    await service.end_one(work, caller, session_id)
    return Response(status_code=204)


@router.post("/confirm", status_code=204)
async def confirm_person(
    asked: Confirmation, request: Request, work: Transaction, services: Environment, caller: Caller
) -> Response:
    """Show again who it is: with a passkey, an identity, the password or, with a second factor, a code.

    It lasts for 15 minutes.
    """
    await service.confirm(work, services, caller, asked, cookie.read(request, services), client_of(request))
    return Response(status_code=204)
