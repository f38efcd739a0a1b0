"""One coordinator or three of a run's fleet, each in its namespace, and calls to the one that leads."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from quorate_api.coordinator.addresses import Addresses
from quorate_chaos.network import Network
from quorate_local import components
from quorate_local.layout import Layout
from quorate_local.options import StackOptions
from quorate_local.process import ProcessSpec

CONTROL_PORT, HTTP_PORT, MEMBERS_PORT = 7400, 7401, 7402
HTTP_TIMEOUT_S = 2.0
PAUSE_S = 0.05
# Twice round, with a named one between: during a change of the leader the second round finds it.
ATTEMPTS_EACH = 3


class Unready(Exception):
    """The fleet did not reach the wanted state; the message has the state that it reached."""


class Coordinators:
    """`names`: the first one begins the fleet."""

    def __init__(self, names: list[str], layout: Layout, options: StackOptions, network: Network) -> None:
        self.names = names
        self.layout = layout
        self.secrets = components.Secrets(layout)
        self.control = [f"{network.addresses[name]}:{CONTROL_PORT}" for name in names]
        self.https = [f"{network.addresses[name]}:{HTTP_PORT}" for name in names]
        self._members = {name: f"{network.addresses[name]}:{MEMBERS_PORT}" for name in names}
        self._hosts = {name: network.addresses[name] for name in names}
        self._options = options
        self._addresses = Addresses([f"http://{address}" for address in self.https])
        self._has_begun = False

    @property
    def is_alone(self) -> bool:
        return len(self.names) == 1

    def spec(self, name: str) -> ProcessSpec:
        ports = {"control": CONTROL_PORT, "http": HTTP_PORT}
        join: list[str] = []
        if not self.is_alone:
            ports["members"] = MEMBERS_PORT
            join = [address for other, address in self._members.items() if other != name] if self._has_begun else []
        self._has_begun = True
        return components.coordinator(
            name, self.layout, self._options, self.secrets, ports, join, host=self._hosts[name]
        )

    def wipe(self, name: str) -> None:
        """Its process has ended; its disk is lost."""
        shutil.rmtree(self.layout.coordinator_named(name))

    # -- calls -------------------------------------------------------------------------------

    def quorum(self, name: str) -> dict[str, Any]:
        """A coordinator's own view; `OSError` when it does not answer."""
        return components.coordinator_call(self._http(name), self.secrets, "GET", "/v1/quorum")

    def leader(self) -> str:
        """The name of the one that leads, in the greatest term; `OSError` when nobody does."""
        leader = components.leading(dict(zip(self.names, self.https, strict=True)), self.secrets)
        if leader is None:
            raise OSError("no coordinator leads")
        return leader

    def replace(self, member: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
        """The operator's command, which waits for the newcomer's vote and removes the old member."""
        command = [
            components.binary(self._options, "quorate-coordinator"),
            *("replace", member, "--timeout-s", f"{timeout_s:.0f}"),
            *("--coordinators", ",".join(self.https)),
            *("--admin-token-file", str(self.secrets.admin_token)),
            *("--ca", str(self._ca())),
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=2 * timeout_s, check=False)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Calls that may be repeated, to the one that leads; `OSError` when nobody answers."""
        attempts = 1 if self.is_alone else ATTEMPTS_EACH * len(self.names)
        timeout_s = HTTP_TIMEOUT_S / min(2, len(self.names))
        for attempt in range(1, attempts + 1):
            url = self._addresses.current
            address = urlsplit(url).netloc
            try:
                return components.coordinator_call(address, self.secrets, method, path, body, timeout_s)
            except urllib.error.HTTPError as error:
                problem = _problem(error)
                if error.code < 500:
                    raise Unready(f"{method} {path} was answered {error.code}: {problem}") from error
                self._addresses.told(url, problem.get("leader"))
                if attempt == attempts:
                    raise
            except OSError:
                self._addresses.failed(url)
                if attempt == attempts:
                    raise
            time.sleep(PAUSE_S)
        raise AssertionError("the last attempt answers or raises")

    def _http(self, name: str) -> str:
        return self.https[self.names.index(name)]

    def _ca(self) -> Path:
        folders = [self.layout.coordinator_named(name) for name in self.names]
        return next(file for folder in folders if (file := folder / "ca.pem").exists())


def _problem(error: urllib.error.HTTPError) -> dict[str, Any]:
    with suppress(ValueError):
        return dict(json.loads(error.read()))
    return {}
