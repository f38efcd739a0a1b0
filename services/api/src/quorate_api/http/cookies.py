"""Cookies of the portal: for this host alone, and out of reach for scripts."""

from fastapi import Response

from quorate_api.http.services import Services


def name_of(services: Services, what: str) -> str:
    # Browsers refuse `__Host-` without https, which loopback does not have.
    return f"{'__Host-' if services.settings.secure else ''}quorate_{what}"


def forget(response: Response, services: Services, name: str) -> None:
    response.delete_cookie(name, path="/", secure=services.settings.secure, httponly=True, samesite="lax")


def keep(response: Response, services: Services, name: str, value: str, max_age_s: int) -> None:
    response.set_cookie(
        name, value, max_age=max_age_s, path="/", secure=services.settings.secure, httponly=True, samesite="lax"
    )
