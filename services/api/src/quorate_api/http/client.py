"""The caller's place: network address, browser, and whether it is a device on which the person has logged in before."""

import secrets
from dataclasses import dataclass
from uuid import UUID

from fastapi import Request, Response

from quorate_api import limits
from quorate_api.http import cookies
from quorate_api.http.address import client_address
from quorate_api.http.services import Services, services_of


@dataclass(frozen=True, slots=True)
class Client:
    address: str
    user_agent: str
    device_cookie: str | None = None

    def device(self, services: Services, account: UUID | None) -> str | None:
        """The number of a device on which this account has logged in before. None: an unknown device."""
        number, _, mac = (self.device_cookie or "").partition(".")
        if account is None or not number:
            return None
        is_known = services.keys.verifies_hex(mac, "device", account.bytes, number.encode())
        return number if is_known else None


def client_of(request: Request) -> Client:
    services = services_of(request)
    address = client_address(request, services.settings.trusted_proxies)
    agent = request.headers.get("user-agent", "")
    shown = "".join(each for each in agent if each.isprintable())[: limits.USER_AGENT_LENGTH_MAX]
    return Client(address, shown, request.cookies.get(_name(services)))


def remember_device(response: Response, services: Services, account: UUID) -> None:
    """Have this device log in again, however many passwords are guessed elsewhere. It is bound to the account: another
    one that claims the same address gains nothing by it."""
    number = secrets.token_hex(16)
    value = f"{number}.{services.keys.mac('device', account.bytes, number.encode()).hex()}"
    cookies.keep(response, services, _name(services), value, limits.DEVICE_LIFETIME_S)


def _name(services: Services) -> str:
    return cookies.name_of(services, "device")
