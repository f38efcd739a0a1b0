"""`/v1/signup`, `/v1/login`, `/v1/logout`, `/v1/me`."""

from fastapi import APIRouter, Request, Response

from quorate_api import limits
from quorate_api.accounts import service
from quorate_api.accounts.schemas import Login, Me, SignedUp, SignUp
from quorate_api.http.address import client_address
from quorate_api.http.principal import Caller, Environment, Transaction, cookie_name
from quorate_api.http.route import PublicRoute, ScopedRoute
from quorate_api.http.services import Services

public = APIRouter(prefix="/v1", tags=["accounts"], route_class=PublicRoute)
router = APIRouter(prefix="/v1", tags=["accounts"], route_class=ScopedRoute)


@public.post("/signup", status_code=201)
async def sign_up(
    asked: SignUp, request: Request, response: Response, work: Transaction, services: Environment
) -> SignedUp:
    """Create an account with an organization and its first project, and log in."""
    address = client_address(request, services.settings.trusted_proxies)
    opened = await service.sign_up(work, services, asked, address)
    _set_cookie(response, services, opened.session_token)
    assert isinstance(opened.body, SignedUp)
    return opened.body


@public.post("/login")
async def log_in(asked: Login, request: Request, response: Response, work: Transaction, services: Environment) -> Me:
    """Log in: sets the session cookie."""
    address = client_address(request, services.settings.trusted_proxies)
    opened = await service.log_in(work, services, asked, address)
    _set_cookie(response, services, opened.session_token)
    assert isinstance(opened.body, Me)
    return opened.body


@router.post("/logout", status_code=204)
async def log_out(request: Request, work: Transaction, services: Environment, caller: Caller) -> Response:
    """End this session."""
    name = cookie_name(services)
    await service.log_out(work, services, caller, request.cookies.get(name))
    response = Response(status_code=204)
    response.delete_cookie(name, path="/", secure=services.settings.secure, httponly=True, samesite="lax")
    return response


@router.get("/me")
async def get_me(work: Transaction, caller: Caller) -> Me:
    """The caller, its organization and its permissions."""
    return await service.me(work, caller)


def _set_cookie(response: Response, services: Services, token: str) -> None:
    response.set_cookie(
        cookie_name(services),
        token,
        max_age=limits.SESSION_LIFETIME_S,
        path="/",
        secure=services.settings.secure,
        httponly=True,
        samesite="lax",
    )
