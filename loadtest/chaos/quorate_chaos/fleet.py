"""Coordinators and servers, each in a network namespace, and the groups under test: in-memory and persistent ones."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quorate_api.security.key_files import SIGNING_KEY_FILE, make_keys
from quorate_api.security.tokens import TokenSigner
from quorate_chaos import machine
from quorate_chaos.coordinators import Coordinators, Unready
from quorate_chaos.network import COORDINATOR, COORDINATORS, Network
from quorate_chaos.power import Power, Rolled
from quorate_harness.held_syncs import HeldSyncs
from quorate_harness.throttle import Throttle
from quorate_local import components
from quorate_local.layout import Layout, write_json, write_text
from quorate_local.options import ServerResources, StackOptions
from quorate_local.process import ProcessSpec, Running, stop_all

SERVER_PORT = 7000
SEGMENT_BYTES = 20 << 20  # small, so that segments end and begin during a run
# Full segments are copied at once, so that copying happens during a run too.
SMALL_JOURNAL = ("--journal-segment-bytes", str(SEGMENT_BYTES), "--journal-keep-segments", "0")
ONE_SIDED = ("--transport", "ofi", "--ofi-provider", "shm")
RETENTION_BYTES = 4 << 30  # nothing is trimmed: the whole log is read back
RATE_PER_S = 20_000  # far above the load, so that a budget never causes a gap
CROWD_RETENTION_BYTES, CROWD_RATE_PER_S = 16 << 20, 500  # little load
# A server announces more than it has: all servers share the machine, and admission is not under test here.
RESOURCES = ServerResources(cpu_cores=8.0, memory_bytes=64 << 30, disk_bytes=1 << 40)
MEMORY, DISK = "memory", "disk"
DURABILITY = {MEMORY: "in_memory", DISK: "persistent"}
# Beside a crowd, groups of one server are served in turn, and are replaced and relieved together.
CROWD = tuple(f"{kind}-{number}" for kind in (MEMORY, DISK) for number in range(1, 12))


@dataclass(frozen=True)
class Shape:
    """Parameters of a run's fleet. `disk_bytes`: each server's data folder is a file system of this size. `has_crowd`:
    22 groups with little load stand beside the two that most faults are aimed at."""

    servers: int = 5
    degree: int = 3
    disk_bytes: int = 0
    entry_bytes: int = 64
    clocks: bool = False
    retention_age_s: int | None = None  # more than a run takes: whatever is trimmed for its age was young
    held_syncs: bool = False  # syncs of a server can be made to hang
    power: bool = False  # unsynced writes of processes can be lost
    plaintext: bool = False  # clients and servers connect without TLS
    certificate_life_s: int | None = None  # None: the coordinator's default, longer than any run
    has_crowd: bool = False
    coordinators: int = 1  # or three
    begins_alone: bool = False  # the first coordinator; the fault starts the others
    one_sided: bool = False  # links go by one-sided writes over shared memory


def kind_of(group: str) -> str:
    """`MEMORY` or `DISK`."""
    return group.partition("-")[0]


class Fleet:
    def __init__(self, folder: Path, shape: Shape) -> None:
        self.shape = shape
        self.names = [f"s{number}" for number in range(1, shape.servers + 1)]
        coordinators = list(COORDINATORS[: shape.coordinators])
        self.network = Network(self.names, coordinators)
        self.layout = Layout(folder.resolve() / "state")
        self._options = StackOptions(
            state=self.layout.root,
            servers=shape.servers,
            server_resources=RESOURCES,
            plaintext=shape.plaintext,
            plaintext_links=shape.plaintext,
            certificate_life_s=shape.certificate_life_s,
        )
        self.power = Power(folder)
        self._throttle = Throttle(folder)
        self._held_syncs = HeldSyncs(folder / "held-syncs") if shape.held_syncs else None
        self.coordinators = Coordinators(coordinators, self.layout, self._options, self.network)
        self._secrets = self.coordinators.secrets
        self._running: dict[str, Running] = {}
        self._stopped: set[str] = set()  # by SIGSTOP
        self._killed: set[str] = set()
        self.crowd = CROWD if shape.has_crowd else ()
        self.groups = {name: str(uuid.uuid4()) for name in (*DURABILITY, *self.crowd)}

    # -- beginning and end -------------------------------------------------------------------

    def start(self) -> None:
        machine.settle_in()
        self.layout.create()
        self.network.create()
        self._secrets.create_admin_token()
        make_keys(self.layout.secrets)
        self._signer = TokenSigner((self.layout.secrets / SIGNING_KEY_FILE).read_text())
        for name in self.names:
            self._make_disk(name)
        if self.shape.power:
            for name in self.coordinators.names:
                self.power.add(name, self.layout.coordinator_named(name))
            for name in self.names:
                self.power.add(name, self.layout.server(name))
        begins = self.coordinators.names[: 1 if self.shape.begins_alone else None]
        for name in begins:
            self.start_coordinator(name)
        for name in self.names:
            self.mint_join_token(name)
        launched = [(name, self._launch(self._server_spec(name))) for name in self.names]
        for name, spec in launched:
            self._running[name].wait_ready(spec)

    def stop(self) -> None:
        self.network.unblock()
        self.free_disks()
        for name in list(self._stopped):
            self.resume(name)
        # Coordinators first, so that they do not see their servers leave one by one.
        coordinators = [running for name, running in self._running.items() if self.is_coordinator(name)]
        servers = [running for name, running in self._running.items() if not self.is_coordinator(name)]
        stop_all(coordinators)
        stop_all(servers)

    def _make_disk(self, name: str) -> None:
        folder = self.layout.server(name)
        folder.mkdir(parents=True)
        if self.shape.disk_bytes:
            size = f"size={self.shape.disk_bytes}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=True)

    # -- processes ---------------------------------------------------------------------------

    def is_coordinator(self, name: str) -> bool:
        return name in self.coordinators.names

    def start_coordinator(self, name: str = COORDINATOR) -> None:
        self.start_coordinators([name])

    def start_coordinators(self, names: list[str]) -> None:
        """All at once: of several, a majority may be needed before any is ready. Then wait for each."""
        launched = [self._launch(self._placed(self.coordinators.spec(name), name)) for name in names]
        for spec in launched:
            self._running[spec.name].wait_ready(spec)

    def start_server(self, name: str) -> None:
        """Start it again on its disk, and wait until it serves."""
        spec = self._server_spec(name)
        self._launch(spec)
        self._running[name].wait_ready(spec)

    def start_servers(self, names: list[str]) -> None:
        """All at once, then wait for each."""
        launched = [(name, self._launch(self._server_spec(name))) for name in names]
        for name, spec in launched:
            self._running[name].wait_ready(spec)

    def launch_server(self, name: str) -> None:
        """Start it without waiting: it may be unable to become ready yet."""
        self._launch(self._server_spec(name))

    def mint_join_token(self, name: str) -> None:
        components.mint_join_token(self.coordinators.https, self._secrets, name)

    def kill(self, *names: str) -> None:
        """kill -9, all at once."""
        for name in names:
            self._running[name].identity.send(signal.SIGKILL)
            self._stopped.discard(name)
            self._killed.add(name)
        for name in names:
            self._running[name].kill()

    def freeze(self, name: str) -> None:
        self._running[name].identity.send(signal.SIGSTOP)
        self._stopped.add(name)

    def resume(self, name: str) -> None:
        self._running[name].identity.send(signal.SIGCONT)
        self._stopped.discard(name)

    def slow_disk(self, name: str, writes_per_s: int) -> None:
        """Fill the disk until `free_disks`, or until the server is started again."""
        self._throttle.slow(self._running[name].identity.pid, writes_per_s)

    def hang_disk(self, name: str) -> None:
        """Its syncs do not return until `free_disks`."""
        assert self._held_syncs is not None, "the fault's shape says so"
        self._held_syncs.hang(self._running[name].identity.pid)

    def free_disks(self) -> None:
        self._throttle.lift()
        if self._held_syncs is not None:
            self._held_syncs.release()

    def stopped(self) -> set[str]:
        """Stopped by SIGSTOP, and not resumed."""
        return set(self._stopped)

    def filler(self, name: str) -> Path:
        """A file that takes the space of a server's data."""
        return self.layout.server(name) / "filler"

    def journal(self, name: str) -> Path:
        return self.layout.server(name) / "journal"

    def dead(self) -> list[str]:
        return [name for name, running in self._running.items() if not running.is_alive()]

    def crashed(self) -> dict[str, int | None]:
        """Processes that ended and were not killed, with their exit codes."""
        return {name: self._running[name].exit_code() for name in self.dead() if name not in self._killed}

    def panics(self) -> list[str]:
        """Log lines that report a broken invariant."""
        found = []
        for name in self._running:
            lines = self.layout.log(name).read_text(errors="replace").splitlines()
            for number, line in enumerate(lines):
                if "panicked at" in line:
                    found.append(f"{name}: {line} {' '.join(lines[number + 1 : number + 3])}")
        return found

    def _launch(self, spec: ProcessSpec) -> ProcessSpec:
        self._running[spec.name] = Running.start(spec, self.layout)
        self._killed.discard(spec.name)
        return spec

    def _server_spec(self, name: str) -> ProcessSpec:
        listen = f"{self.network.addresses[name]}:{SERVER_PORT}"
        spec = components.server(name, self.layout, self._options, self._secrets, listen, self.coordinators.control, "")
        more = [*SMALL_JOURNAL, *(ONE_SIDED if self.shape.one_sided else [])]
        spec = replace(spec, command=[*spec.command, *more], env={})
        return self._placed(spec, name)

    def _placed(self, spec: ProcessSpec, name: str) -> ProcessSpec:
        # Only the coordinators' HTTP interface is not encrypted: the network is this machine's.
        command = [*spec.command, *(["--allow-plaintext"] if self.is_coordinator(name) else [])]
        return replace(spec, command=self.network.command(name, [*self._preloaded(name), *command]))

    def _preloaded(self, name: str) -> list[str]:
        """`env` with the settings for the process."""
        if self.shape.power:
            return ["env", *(f"{key}={value}" for key, value in self.power.environment(name).items())]
        if self._held_syncs is not None:
            return ["env", *(f"{key}={value}" for key, value in self._held_syncs.environment().items())]
        return self._clock(name)

    # -- power -------------------------------------------------------------------------------

    def check_power(self) -> None:
        """Raises `Unseen` if a process writes in a way that a power cut would not roll back."""
        dead = self.dead()
        for name in [*self.coordinators.names, *self.names]:
            if name not in dead:
                self.power.check(name)

    def cut_power(self, *names: str, choice: random.Random, mode: str) -> dict[str, Rolled]:
        """kill -9, all at once; then their unsynced writes are lost, as `mode` says."""
        self.kill(*names)
        return {name: self.power.cut(name, choice, mode) for name in names}

    # -- clocks ------------------------------------------------------------------------------

    def _clock(self, name: str) -> list[str]:
        """`env` with a wall clock of the process's own. Its monotonic clock stays true."""
        if not self.shape.clocks:
            return []
        library = machine.faketime()
        assert library is not None, "checked before the run"
        if not self._clock_file(name).exists():
            self.set_clock(name, 0)
        variables = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock_file(name)),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        return ["env", *(f"{key}={value}" for key, value in variables.items())]

    def set_clock(self, name: str, step_s: int) -> None:
        """From now on its wall clock is off by `step_s` seconds."""
        write_text(self._clock_file(name), f"{step_s:+d}s\n")

    def _clock_file(self, name: str) -> Path:
        return self.layout.run / f"clock-{name}"

    # -- groups ------------------------------------------------------------------------------

    def create_groups(self, timeout_s: float) -> None:
        for name, group in self.groups.items():
            sla = {
                "durability": DURABILITY[kind_of(name)],
                "replication_degree": self.shape.degree,
                "min_replicas": None,
                "request_size_bytes": self.shape.entry_bytes,
                "rate_per_s": CROWD_RATE_PER_S if name in self.crowd else RATE_PER_S,
                "region": "local",
                "retention_bytes": CROWD_RETENTION_BYTES if name in self.crowd else RETENTION_BYTES,
                "retention_age_s": self.shape.retention_age_s,
            }
            self.coordinators.call("PUT", f"/v1/groups/{group}", {"sla": sla, "project_id": str(uuid.uuid4())})
        self.wait_whole(timeout_s)

    def view(self, name: str) -> dict[str, Any]:
        """The coordinator's view of a group; `OSError` when it does not answer."""
        return self.coordinators.call("GET", f"/v1/groups/{self.groups[name]}")

    def last_event(self) -> int:
        """The number of the coordinator's last event."""
        return int(self.coordinators.call("GET", "/v1/events")["last"])

    def events_after(self, seq: int) -> list[dict[str, Any]]:
        """The coordinator's events with greater numbers, as far as one answer holds them."""
        return list(self.coordinators.call("GET", f"/v1/events?after={seq}")["events"])

    def chain(self, name: str) -> list[str]:
        """Names of the servers of a group's chain, head first."""
        return [replica["name"] for replica in self.view(name)["replicas"]]

    def handle_file(self, name: str) -> Path:
        return self.layout.root / f"handle-{name}.json"

    def write_handles(self) -> None:
        """The clients' handles: the chains in the coordinator's view, and a token."""
        tls = {"required": True, "ca_pem": self.coordinators.call("GET", "/v1/ca")["ca_pem"]}
        secured = {} if self.shape.plaintext else {"tls": tls}
        for name, group in self.groups.items():
            view = self.view(name)
            if not view["replicas"]:
                continue
            endpoints = [{key: member[key] for key in ("server_id", "address", "role")} for member in view["replicas"]]
            token = self._signer.sign("chaos", uuid.UUID(group), ["append", "read"], datetime.now(UTC))
            handle = {"group_id": group, "name": name, "epoch": view["epoch"], "endpoints": endpoints}
            write_json(self.handle_file(name), {**handle, "token": token.text, **secured}, 0o600)

    def is_whole(self, name: str) -> bool:
        """All replicas of the degree are in the chain and alive, and none is a learner."""
        view = self.view(name)
        alive = [replica for replica in view["replicas"] if replica["alive"]]
        return view["status"] == "active" and len(alive) == self.shape.degree and not view["learners"]

    def status(self, name: str) -> str:
        return str(self.view(name)["status"])

    def wait_whole(self, timeout_s: float, may_be_lost: frozenset[str] = frozenset()) -> set[str]:
        """Wait until every group is whole; the names of groups that are lost instead, if they may be."""
        deadline = time.monotonic() + timeout_s
        lost: set[str] = set()
        waiting = set(self.groups)
        while waiting:
            for name in sorted(waiting):
                try:
                    if self.is_whole(name):
                        waiting.discard(name)
                    elif kind_of(name) in may_be_lost and self.status(name) == "lost":
                        waiting.discard(name)
                        lost.add(name)
                except OSError:
                    continue
            if waiting and time.monotonic() > deadline:
                raise Unready(f"after {timeout_s:.0f} s: {'; '.join(self._describe(name) for name in sorted(waiting))}")
            time.sleep(0.1)
        return lost

    def wait_whole_or(self, timeout_s: float) -> None:
        """Wait until every group is whole, but not longer than that."""
        with contextlib.suppress(Unready):
            self.wait_whole(timeout_s)

    def _describe(self, name: str) -> str:
        try:
            view = self.view(name)
        except OSError as error:
            return f"{name}: the coordinator does not answer ({error})"
        members = [f"{r['name']}{'' if r['alive'] else ' (failed)'}" for r in view["replicas"]]
        learners = [f"{r['name']}{'' if r['alive'] else ' (failed)'}" for r in view["learners"]]
        text = f"{name} is {view['status']} in epoch {view['epoch']} on {', '.join(members) or 'nobody'}"
        return text + (f", learning: {', '.join(learners)}" if learners else "")
