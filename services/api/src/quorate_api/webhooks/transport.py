"""HTTP to receivers of webhooks, never into private networks.

The name is resolved here, each of its addresses checked, and the connection made to a checked address: no second look
at DNS may find another one. Redirects are not followed.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

import httpx2

from quorate_api import limits
from quorate_api.networks import Address, Network, is_allowed, may_send_to

Resolve = Callable[[str, int], Awaitable[list[str]]]


class AddressForbidden(Exception):
    """The receiver's name leads into a private network. The text is for the customer, and names no address."""


class PublicOnly(httpx2.AsyncBaseTransport):
    """No connection is kept: its TLS name was checked for one receiver alone."""

    def __init__(self, allowed: Sequence[Network], resolve: Resolve | None = None) -> None:
        self._allowed = allowed
        self._resolve = resolve or _resolve
        self._inner = httpx2.AsyncHTTPTransport(
            trust_env=False, limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host, url = request.url.host, request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        addresses = await self._checked(host, port, is_plain=url.scheme == "http")
        for last, address in enumerate(addresses, 1 - len(addresses)):
            reached = httpx2.Request(
                request.method,
                url.copy_with(host=str(address)),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return await self._inner.handle_async_request(reached)
            except httpx2.ConnectError:
                if last == 0:
                    raise
        raise AssertionError("an unresolved name raises before")

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _checked(self, host: str, port: int, *, is_plain: bool) -> list[Address]:
        try:
            found = [ip_address(text) for text in await self._resolve(host, port)]
        except OSError as error:
            raise httpx2.ConnectError("the name is not found in DNS") from error
        if not found:
            raise httpx2.ConnectError("the name is not found in DNS")
        if not all(may_send_to(address, self._allowed) for address in found):
            raise AddressForbidden("the name leads into a private network")
        if is_plain and not all(is_allowed(address, self._allowed) for address in found):
            raise AddressForbidden("plain http is for private networks that the operator allows")
        return found[: limits.WEBHOOK_ADDRESSES_MAX]


async def _resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))
