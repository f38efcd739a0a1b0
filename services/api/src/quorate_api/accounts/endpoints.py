"""`/v1/signup`, `/v1/login`, `/v1/logout`, `/v1/me`."""

from fastapi import APIRouter, Request, Response

from quorate_api import limits
from quorate_api.accounts import service
from quorate_api.accounts.schemas import (
    ChosenOrganization,
    Login,
    Me,
    ProviderLogin,
    ProviderLoginOutcome,
    ProviderSignUp,
    SignedUp,
    SignUp,
)
from quorate_api.http import cookies
from quorate_api.http.client import client_of, remember_device
from quorate_api.http.principal import Caller, Environment, Transaction, cookie_name
from quorate_api.http.route import PublicRoute, ScopedRoute
from quorate_api.http.services import Services
from quorate_api.identities import cookie
from quorate_api.identities import service as identities
from quorate_api.passkeys.schemas import PasskeyLogin
from quorate_api.sessions import service as sessions

public = APIRouter(prefix="/v1", tags=["accounts"], route_class=PublicRoute)
router = APIRouter(prefix="/v1", tags=["accounts"], route_class=ScopedRoute)


@public.post("/signup", status_code=201)
async def sign_up(
    asked: SignUp, request: Request, response: Response, work: Transaction, services: Environment
) -> SignedUp:
    """Create an account with an organization and its first project, and log in."""
    opened = await service.sign_up(work, services, asked, client_of(request))
    open_session(request, response, services, opened)
    assert isinstance(opened.body, SignedUp)
    return opened.body


@public.post("/login")
async def log_in(asked: Login, request: Request, response: Response, work: Transaction, services: Environment) -> Me:
    """Log in: sets the session cookie."""
    opened = await service.log_in(work, services, asked, client_of(request))
    return open_session(request, response, services, opened)


@public.post("/login/passkey")
async def log_in_with_passkey(
    asked: PasskeyLogin, request: Request, response: Response, work: Transaction, services: Environment
) -> Me:
    """Log in with a passkey, after `POST /v1/passkey-requests`: sets the session cookie."""
    opened = await service.log_in_with_passkey(work, services, asked.credential, client_of(request))
    return open_session(request, response, services, opened)


@public.post("/login/provider")
async def log_in_with_provider(
    asked: ProviderLogin, request: Request, response: Response, work: Transaction, services: Environment
) -> ProviderLoginOutcome:
    """Log in with what an identity provider has told the browser, after `POST /v1/login/provider/begin`."""
    client = client_of(request)
    attempt = await identities.show(work, services, cookie.read(request, services), asked, None, client)
    assert attempt.identity is not None, "shown"
    cookie.keep(response, services, attempt)
    outcome, opened = await service.log_in_with_provider(work, services, attempt, asked.second_factor, client)
    if opened is None:
        return ProviderLoginOutcome(outcome=outcome, email=attempt.identity.email, me=None)
    cookie.end(response, services)
    return ProviderLoginOutcome(
        outcome=outcome, email=attempt.identity.email, me=open_session(request, response, services, opened)
    )


@public.post("/signup/provider", status_code=201)
async def sign_up_with_provider(
    asked: ProviderSignUp, request: Request, response: Response, work: Transaction, services: Environment
) -> SignedUp:
    """Create an account for the identity that was just shown, with an organization and its first project; log in."""
    attempt = cookie.read(request, services)
    opened = await service.sign_up_with_provider(work, services, attempt, asked.organization, client_of(request))
    cookie.end(response, services)
    open_session(request, response, services, opened)
    assert isinstance(opened.body, SignedUp)
    return opened.body


@router.post("/logout", status_code=204)
async def log_out(work: Transaction, services: Environment, caller: Caller) -> Response:
    """End this session."""
    await sessions.end(work, caller)
    response = Response(status_code=204)
    cookies.forget(response, services, cookie_name(services))
    response.headers["Clear-Site-Data"] = '"cache"'  # pages that the back button would show
    return response


@router.get("/me")
async def get_me(work: Transaction, caller: Caller) -> Me:
    """The caller, its organization and its permissions."""
    return await service.me(work, caller)


@router.post("/me/organization")
async def switch_organization(
    asked: ChosenOrganization,
    request: Request,
    response: Response,
    work: Transaction,
    services: Environment,
    caller: Caller,
) -> Me:
    """Go on in another organization of the person, with another session: sets the cookie anew."""
    opened = await service.switch(work, services, caller, asked.organization_id, client_of(request))
    return open_session(request, response, services, opened)


def open_session(request: Request, response: Response, services: Services, opened: service.Opened) -> Me:
    """Set the cookies of a new session, and say whose it is."""
    request.state.person = {
        "kind": "person",
        "id": str(opened.user_id),
        "name": opened.email,
        "credential": str(opened.credential.id),
    }
    cookies.keep(response, services, cookie_name(services), opened.session_token, limits.SESSION_LIFETIME_S)
    if opened.email_verified:
        remember_device(response, services, opened.user_id)
    return opened.body  # type: ignore[return-value]
