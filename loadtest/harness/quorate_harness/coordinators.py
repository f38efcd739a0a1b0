"""HTTP to the coordinator that leads, for programs that measure: calls wait for an election."""

from __future__ import annotations

import time
from collections.abc import Sequence

import httpx2

from quorate_api.coordinator.addresses import Addresses

FIND_S = 10.0
PAUSE_S = 0.02


class LeaderTransport(httpx2.BaseTransport):
    """`addresses`: host:port of each; the URL's own host does not count. Calls that may have been done are not
    repeated."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = Addresses([f"http://{address}" for address in addresses])
        self._http = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        until = time.monotonic() + FIND_S
        while True:
            url = self._addresses.current
            request.url = request.url.copy_with(netloc=url.removeprefix("http://").encode())
            try:
                answer = self._http.handle_request(request)
            except httpx2.ConnectError:
                if time.monotonic() > until:
                    raise
                self._addresses.failed(url)
            else:
                if answer.status_code != 503:
                    return answer
                answer.read()
                if answer.json().get("code") != "not_leader" or time.monotonic() > until:
                    return answer
                self._addresses.told(url, answer.json().get("leader"))
                answer.close()
            time.sleep(PAUSE_S)

    def close(self) -> None:
        self._http.close()
