"""Draining a server: its replicas move to others, one by one, until it may stop.

The coordinator does the work (docs/internals/coordinator.md). An interrupted command changes nothing: started again, it
shows the state of the drain.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2

POLL_S = 0.25
CALL_TIMEOUT_S = 10.0
AWAY_MAX_S = 60.0  # enough for a restart of the coordinator


class DrainFailed(Exception):
    """The drain cannot be requested, or did not end in time. The text names the remedy."""


@dataclass(frozen=True)
class Progress:
    """Progress of a drain. `state` is draining or drained."""

    state: str
    replicas_left: int
    message: str

    @property
    def done(self) -> bool:
        return self.state == "drained"


class Coordinator:
    """The calls of the coordinator's HTTP interface that an operator makes."""

    def __init__(self, address: str, token: str, transport: httpx2.BaseTransport | None = None) -> None:
        self._http = httpx2.Client(
            base_url=f"http://{address}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=CALL_TIMEOUT_S,
            trust_env=False,
            transport=transport,
        )

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def server_id(self, name: str) -> int:
        servers = self._call("GET", "/v1/servers")
        for server in servers:
            if server["name"] == name:
                return int(server["server_id"])
        names = ", ".join(server["name"] for server in servers) or "none"
        raise DrainFailed(f"There is no server {name}; there are: {names}.")

    def drain(self, server_id: int) -> None:
        self._call("POST", f"/v1/servers/{server_id}/drain")

    def cancel(self, server_id: int) -> None:
        self._call("DELETE", f"/v1/servers/{server_id}/drain")

    def progress(self, server_id: int) -> Progress:
        server = self._call("GET", f"/v1/servers/{server_id}")
        drain = server["drain"]
        if drain is None:
            raise DrainFailed("Another command cancelled the drain.")
        return Progress(drain["state"], server["replicas"], drain["message"])

    def _call(self, method: str, path: str) -> Any:
        answer = self._http.request(method, path)
        if answer.is_success:
            return answer.json()
        try:
            detail = answer.json()["detail"]
        except (ValueError, KeyError, TypeError):
            detail = answer.text[:200]
        raise DrainFailed(f"The coordinator refused: {answer.status_code}: {detail}")


def follow(coordinator: Coordinator, server_id: int, timeout_s: float) -> Iterator[Progress]:
    """Progress, until drained. Raises `DrainFailed` after `timeout_s`; the drain itself continues."""
    deadline_s = time.monotonic() + timeout_s
    answered_s = time.monotonic()
    last = "no report came."
    while True:
        try:
            progress = coordinator.progress(server_id)
        except httpx2.TransportError as error:
            if time.monotonic() - answered_s > AWAY_MAX_S:
                message = f"The coordinator does not answer: {error}. The drain is recorded and continues."
                raise DrainFailed(message) from error
        else:
            answered_s, last = time.monotonic(), progress.message
            yield progress
            if progress.done:
                return
        if time.monotonic() > deadline_s:
            raise DrainFailed(
                f"Not drained after {timeout_s:.0f} s: {last} The drain continues; the same command shows it again, "
                "and --cancel cancels it."
            )
        time.sleep(POLL_S)
