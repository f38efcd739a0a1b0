"""`/v1/identity-providers`, `/v1/me/identities`. Logging in and signing up with one are in `accounts`."""

from uuid import UUID

from fastapi import APIRouter, Request, Response

from quorate_api.http.client import client_of
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import PublicRoute, ScopedRoute
from quorate_api.identities import cookie, service
from quorate_api.identities.schemas import (
    ChosenProvider,
    Identities,
    Identity,
    IdentityErrand,
    IdentityProviders,
    ProviderAddress,
    ProviderAnswer,
)

public = APIRouter(prefix="/v1", tags=["accounts"], route_class=PublicRoute)
router = APIRouter(prefix="/v1/me/identities", tags=["accounts"], route_class=ScopedRoute)


@public.get("/identity-providers")
async def list_identity_providers(services: Environment) -> IdentityProviders:
    """The identity providers with which people may log in."""
    return service.providers(services)


@public.post("/login/provider/begin")
async def begin_provider_login(
    asked: ChosenProvider, request: Request, response: Response, work: Transaction, services: Environment
) -> ProviderAddress:
    """Begin to log in with an identity provider. Sets a cookie for ten minutes."""
    await services.rates.identity(client_of(request).address)
    begun = await service.begin(work, services, asked.provider, None)
    cookie.keep(response, services, begun.attempt)
    return ProviderAddress(url=begun.url)


@router.get("")
async def list_identities(work: Transaction, services: Environment, caller: Caller) -> Identities:
    """The person's identities at providers."""
    return await service.all_of(work, services, caller)


@router.post("/begin")
async def begin_identity(
    asked: IdentityErrand, response: Response, work: Transaction, services: Environment, caller: Caller
) -> ProviderAddress:
    """Begin to connect an identity, or to confirm with one who it is. Sets a cookie for ten minutes."""
    person = caller.require_person()
    if asked.purpose == "connect":
        caller.require_confirmed()
    begun = await service.begin(work, services, asked.provider, person)
    cookie.keep(response, services, begun.attempt)
    return ProviderAddress(url=begun.url)


@router.post("", status_code=201)
async def add_identity(
    asked: ProviderAnswer,
    request: Request,
    response: Response,
    work: Transaction,
    services: Environment,
    caller: Caller,
) -> Identity:
    """Connect the identity that the provider has told. From then on it logs in."""
    attempt = await service.show(
        work, services, cookie.read(request, services), asked, caller.require_person(), client_of(request)
    )
    cookie.end(response, services)
    return await service.add(work, services, caller, attempt)


@router.delete("/{identity_id}", status_code=204)
async def remove_identity(identity_id: UUID, work: Transaction, services: Environment, caller: Caller) -> Response:
    """Remove an identity: it logs in no more."""
    await service.remove(work, services, caller, identity_id)
    return Response(status_code=204)
