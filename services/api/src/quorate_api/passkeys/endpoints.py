"""`/v1/me/passkeys`. Logging in with one is in `accounts`."""

from uuid import UUID

from fastapi import APIRouter, Response

from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import PublicRoute, ScopedRoute
from quorate_api.passkeys import service
from quorate_api.passkeys.schemas import CeremonyOptions, NewPasskey, Passkey, Passkeys

public = APIRouter(prefix="/v1", tags=["accounts"], route_class=PublicRoute)
router = APIRouter(prefix="/v1/me/passkeys", tags=["accounts"], route_class=ScopedRoute)


@public.post("/passkey-requests")
async def ask_for_passkey(services: Environment) -> CeremonyOptions:
    """Begin to show a passkey, to log in or to confirm who one is. The answer is good for five minutes, once."""
    return service.ask(services)


@router.get("")
async def list_passkeys(work: Transaction, caller: Caller) -> Passkeys:
    """The person's passkeys."""
    return await service.all_of(work, caller)


@router.post("/begin")
async def begin_passkey(work: Transaction, services: Environment, caller: Caller) -> CeremonyOptions:
    """Begin to add a passkey: what the browser's `navigator.credentials.create` takes."""
    return await service.begin(work, services, caller)


@router.post("", status_code=201)
async def add_passkey(asked: NewPasskey, work: Transaction, services: Environment, caller: Caller) -> Passkey:
    """Add the passkey that the browser has made. It logs in alone, without password and code."""
    return await service.add(work, services, caller, asked)


@router.delete("/{passkey_id}", status_code=204)
async def remove_passkey(passkey_id: UUID, work: Transaction, services: Environment, caller: Caller) -> Response:
    """Remove a passkey."""
    await service.remove(work, services, caller, passkey_id)
    return Response(status_code=204)
