"""A real stack to measure on: its groups, where their replicas are, its servers' memory and logs."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2

from quorate_api.security.key_files import SIGNING_KEY_FILE
from quorate_api.security.tokens import TokenSigner
from quorate_harness.coordinators import LeaderTransport
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.display import Display
from quorate_local.layout import write_text
from quorate_local.options import ServerResources
from quorate_local.release import Release

POLL_S = 0.02
COORDINATOR_TIMEOUT_S = 10.0
READY_TIMEOUT_S = 30.0


class MeasurementFailed(Exception):
    """The measurement could not be made; the message says why."""


@dataclass
class Fleet:
    """Servers, one customer, and the coordinator's own view of where things are."""

    stack: Stack
    customer: Customer
    display: Display
    folder: Path
    _coordinator: httpx2.Client
    _admitted: set[str] = field(default_factory=set)  # the API does not know these
    _partition_of: dict[str, tuple[str, int]] = field(default_factory=dict)

    def coordinator_client(self, timeout_s: float) -> httpx2.Client:
        """Another client of the coordinator that leads, with connections of its own."""
        return _client(self.stack, timeout_s)

    # -- groups ------------------------------------------------------------------------------

    def create_group(self, name: str, durability: str, rate_per_s: int, size: int = 64, **sla: int) -> str:
        """Buys a group through the API and waits until it is active; its id."""
        asked = {
            "durability": durability,
            "replication_degree": 3,
            "request_size_bytes": size,
            "rate_per_s": rate_per_s,
        }
        return str(self.customer.create_group(name, {**asked, **sla})["id"])

    def admit_group(self, project_id: str, **sla: Any) -> str:
        """Admits a group at the coordinator itself: many are had sooner, and they cost the servers the same."""
        group_id = str(uuid4())
        body = {"sla": {"region": "local", "min_replicas": None, **sla}, "project_id": project_id}
        answer = self._coordinator.put(f"/v1/groups/{group_id}", json=body)
        if answer.status_code != 201:
            raise MeasurementFailed(f"the coordinator did not admit a group: {answer.status_code} {answer.text[:300]}")
        self._admitted.add(group_id)
        return group_id

    def issue_join_token(self) -> str:
        answer = self._coordinator.post("/v1/join-tokens", json={"ttl_s": 600})
        answer.raise_for_status()
        return str(answer.json()["token"])

    def signed_handle(self, group_id: str) -> dict[str, Any]:
        """A handle of a group that the API does not know (`admit_group`), signed with the stack's own key."""
        ca = self._coordinator.get("/v1/ca")
        ca.raise_for_status()
        view = self.group(group_id)
        endpoints = [{key: member[key] for key in ("server_id", "address", "role")} for member in view["replicas"]]
        signer = TokenSigner((self.stack.layout.secrets / SIGNING_KEY_FILE).read_text())
        token = signer.sign("claims", UUID(group_id), ["append", "read"], datetime.now(UTC))
        return {
            "group_id": group_id,
            "name": group_id,
            "epoch": view["epoch"],
            "endpoints": endpoints,
            "token": token.text,
            "tls": {"required": True, "ca_pem": ca.json()["ca_pem"]},
        }

    def delete_group(self, group_id: str) -> None:
        self._coordinator.delete(f"/v1/groups/{group_id}").raise_for_status()

    def group(self, group_id: str) -> dict[str, Any]:
        """As the coordinator sees it: status, epoch, replicas in the order of the chain, learners."""
        answer = self._coordinator.get(f"/v1/groups/{group_id}")
        answer.raise_for_status()
        return dict(answer.json())

    def groups(self) -> list[dict[str, Any]]:
        answer = self._coordinator.get("/v1/groups")
        answer.raise_for_status()
        return list(answer.json())

    def handle_file(self, group_id: str) -> Path:
        """A fresh handle, in a file that only its owner reads."""
        handle = self.signed_handle(group_id) if group_id in self._admitted else self._bought_handle(group_id)
        path = self.folder / f"handle-{group_id}.json"
        write_text(path, json.dumps(handle), 0o600)
        return path

    def _bought_handle(self, group_id: str) -> dict[str, Any]:
        whole, number = self._partition_of.get(group_id, (group_id, 0))
        handle = self.customer.get(f"/v1/groups/{whole}/handle")
        if handle["partitions"] is None:
            return handle
        return {**handle, **handle["partitions"]["members"][number], "partitions": None}

    def partitions(self, group_id: str) -> list[str]:
        """The ids of a bought group's partitions, in order: loads may append to each as to a group."""
        items = self.customer.get(f"/v1/groups/{group_id}/partitions")["items"]
        ids = [str(item["group_id"]) for item in items]
        self._partition_of |= {partition: (group_id, number) for number, partition in enumerate(ids)}
        return ids

    def is_whole(self, group_id: str) -> bool:
        """Whether it has its full degree, with every replica alive."""
        group = self.group(group_id)
        replicas = group["replicas"]
        is_full = len(replicas) == group["sla"]["replication_degree"] and not group["learners"]
        return is_full and group["status"] == "active" and all(replica["alive"] for replica in replicas)

    # -- servers -----------------------------------------------------------------------------

    def servers(self) -> dict[int, dict[str, Any]]:
        """By id."""
        answer = self._coordinator.get("/v1/servers")
        answer.raise_for_status()
        found = answer.json()
        listed = found if isinstance(found, list) else found["servers"]
        return {server["server_id"]: server for server in listed}

    def drain(self, server_id: int) -> None:
        self._coordinator.post(f"/v1/servers/{server_id}/drain").raise_for_status()

    def call_off_drain(self, server_id: int) -> None:
        self._coordinator.delete(f"/v1/servers/{server_id}/drain").raise_for_status()

    def move(self, group_id: str, from_server_id: int, to_server_id: int | None = None) -> None:
        """Has a replica leave a server, for another one or for one that the coordinator chooses."""
        body = {"from_server_id": from_server_id, "to_server_id": to_server_id}
        answer = self._coordinator.post(f"/v1/groups/{group_id}/moves", json=body)
        if answer.status_code != 200:
            raise MeasurementFailed(f"the coordinator moved nothing: {answer.status_code} {answer.text[:300]}")

    def events(self, after: int) -> list[dict[str, Any]]:
        """The coordinator's events after this number, in order."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self._coordinator.get("/v1/events", params={"after": after})
            answer.raise_for_status()
            body = answer.json()
            found += body["events"]
            if not body["events"] or body["events"][-1]["seq"] >= body["last"]:
                return found
            after = body["events"][-1]["seq"]

    def last_event(self) -> int:
        answer = self._coordinator.get("/v1/events", params={"after": 0})
        answer.raise_for_status()
        return int(answer.json()["last"])

    def names(self) -> list[str]:
        return self.stack.options.server_names()

    def pid(self, name: str) -> int:
        return self.stack.processes()[name].identity.pid

    def pids(self) -> list[int]:
        return [self.pid(name) for name in self.names()]

    def memory_bytes(self, name: str) -> tuple[int, int]:
        """(now, greatest so far); `MeasurementFailed` when the server is gone."""
        memory = self.stack.processes()[name].identity.memory_bytes()
        if memory is None:
            raise MeasurementFailed(f"server {name} ended by itself; its log is {self.log(name)}")
        return memory

    def log(self, process: str) -> Path:
        return self.stack.layout.log(process)

    def restart_server(self, name: str) -> None:
        """Starts a dead server again and waits until the coordinator counts it as alive."""
        self.stack.restart_server(name)
        address = self.stack.addresses[name]
        self.wait(
            lambda: any(s["alive"] and s["address"] == address for s in self.servers().values()),
            f"server {name} to return",
        )

    # -- waiting -----------------------------------------------------------------------------

    def wait(self, holds: Callable[[], bool], what: str, timeout_s: float = READY_TIMEOUT_S) -> float:
        """Seconds until `holds`; `MeasurementFailed` when it does not in time."""
        begun = time.monotonic()
        while not holds():
            if time.monotonic() - begun > timeout_s:
                raise MeasurementFailed(f"waited {timeout_s:.0f} s for {what}")
            time.sleep(POLL_S)
        return time.monotonic() - begun

    def wait_active(self, group_ids: set[str], timeout_s: float = READY_TIMEOUT_S) -> None:
        self.wait(
            lambda: group_ids <= {group["group_id"] for group in self.groups() if group["status"] == "active"},
            f"{len(group_ids)} groups to be active",
            timeout_s,
        )

    def wait_whole(self, *group_ids: str, timeout_s: float = READY_TIMEOUT_S) -> float:
        """Seconds until each group has its full degree."""
        return self.wait(
            lambda: all(self.is_whole(group_id) for group_id in group_ids), "the groups' full degree", timeout_s
        )


def _client(stack: Stack, timeout_s: float) -> httpx2.Client:
    return httpx2.Client(
        base_url="http://coordinator",
        headers={"Authorization": f"Bearer {stack.admin_token()}"},
        timeout=timeout_s,
        transport=LeaderTransport(stack.coordinators_http()),
    )


@contextmanager
def fleet(
    folder: Path,
    display: Display,
    servers: int,
    coordinator_env: Mapping[str, str] | None = None,
    server_env: Mapping[str, str] | None = None,
    server_resources: ServerResources | None = None,
    wipes: bool = True,
    coordinators: int = 1,
    releases: Mapping[str, Release] | None = None,
) -> Iterator[Fleet]:
    """Starts a stack in `folder`, which loses what an earlier one left there unless `wipes` is false; stops and removes
    it at the end, but for its logs."""
    folder.mkdir(parents=True, exist_ok=True)
    options = StackOptions.from_environment(
        state=folder / "state",
        servers=servers,
        coordinators=coordinators,
        coordinator_env=dict(coordinator_env or {}),
        server_env=dict(server_env or {}),
        server_resources=server_resources or ServerResources(),
        releases=dict(releases or {}),
    )
    quiet = Display(quiet=True)
    stack = Stack(options, quiet)
    if wipes:
        stack.wipe()
    try:
        with display.step(f"starting {servers} servers, coordinator, API"):
            stack.start()
        with (
            _client(stack, COORDINATOR_TIMEOUT_S) as coordinator,
            Customer(stack.api_url, "claims") as customer,
        ):
            yield Fleet(stack, customer, display, folder, coordinator)
    finally:
        with display.step("stopping"):
            stack.stop()
            for data in ("servers", "postgres", "redis"):
                shutil.rmtree(options.state / data, ignore_errors=True)


def log_lines(log: Path, begin: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """(microsecond of the Unix clock, line) for each JSON line from byte `begin` on."""
    with log.open("rb") as stream:
        stream.seek(begin)
        for text in stream:
            try:
                line = json.loads(text)
                at = datetime.fromisoformat(line["timestamp"])
            except (ValueError, KeyError):
                continue  # a line of the supervisor or of a panic
            yield round(at.timestamp() * 1e6), line
