"""The cookie of an attempt, until its end."""

from fastapi import Request, Response

from quorate_api import limits
from quorate_api.http import cookies
from quorate_api.http.services import Services
from quorate_api.identities.attempt import Attempt


def keep(response: Response, services: Services, attempt: Attempt) -> None:
    cookies.keep(response, services, _name(services), attempt.sealed(services.keys), limits.IDENTITY_ATTEMPT_S)


def read(request: Request, services: Services) -> Attempt | None:
    return Attempt.opened(services.keys, request.cookies.get(_name(services)))


def end(response: Response, services: Services) -> None:
    cookies.forget(response, services, _name(services))


def _name(services: Services) -> str:
    return cookies.name_of(services, "identity")
