"""`/v1/organization/invitations` for members, `/v1/invitations/…` for the invited."""

from uuid import UUID

from fastapi import APIRouter, Request, Response

from quorate_api.accounts.endpoints import open_session
from quorate_api.accounts.schemas import Me
from quorate_api.http.client import client_of
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import PublicRoute, ScopedRoute
from quorate_api.identities import cookie
from quorate_api.invitations import service
from quorate_api.invitations.schemas import Acceptance, Invitation, Invitations, Invited, Link, NewInvitation
from quorate_api.passkeys.schemas import FirstPasskeyOptions

public = APIRouter(prefix="/v1/invitations", tags=["members"], route_class=PublicRoute)
router = APIRouter(prefix="/v1", tags=["members"], route_class=ScopedRoute)


@router.get("/organization/invitations")
async def list_invitations(work: Transaction, caller: Caller) -> Invitations:
    """Invitations that wait for an answer, newest first."""
    return await service.all_of(work, caller)


@router.post("/organization/invitations", status_code=201)
async def invite_member(asked: NewInvitation, work: Transaction, services: Environment, caller: Caller) -> Invitation:
    """Invite a person by mail. Another invitation of the same address takes the place of the one before."""
    return await service.create(work, services, caller, asked)


@router.delete("/organization/invitations/{invitation_id}", status_code=204)
async def withdraw_invitation(invitation_id: UUID, work: Transaction, caller: Caller) -> Response:
    """Withdraw an invitation: its link does not work any more."""
    await service.withdraw(work, caller, invitation_id)
    return Response(status_code=204)


@public.post("/look")
async def look_at_invitation(asked: Link, request: Request, work: Transaction, services: Environment) -> Invited:
    """The invitation of a link, for its holder."""
    return await service.look(work, services, asked.token, client_of(request))


@public.post("/passkey")
async def begin_first_passkey(
    asked: Link, request: Request, work: Transaction, services: Environment
) -> FirstPasskeyOptions:
    """Begin to make a passkey for the account with which an invitation is accepted."""
    return await service.begin_passkey(work, services, asked.token, client_of(request))


@public.post("/accept")
async def accept_invitation_as_new(
    asked: Acceptance, request: Request, response: Response, work: Transaction, services: Environment
) -> Me:
    """Accept an invitation with a new account, which has a password, a passkey or an identity, and log in."""
    attempt = cookie.read(request, services)
    opened = await service.accept_as_new(work, services, asked, attempt, client_of(request))
    if asked.identity is not None:
        cookie.end(response, services)
    return open_session(request, response, services, opened)


@router.post("/me/invitations/accept")
async def accept_invitation(
    asked: Link, request: Request, response: Response, work: Transaction, services: Environment, caller: Caller
) -> Me:
    """Accept an invitation with the account that is logged in, and go on in its organization."""
    opened = await service.accept(work, services, caller, asked.token, client_of(request))
    return open_session(request, response, services, opened)
