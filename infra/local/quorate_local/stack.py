"""The whole stack: the order of its starts and stops, and its interface for programs.

    with Stack(StackOptions(state=Path("/somewhere"))) as stack:
        stack.api_url                # http://127.0.0.1:…
        stack.kill_server("s2")      # kill -9
        stack.restart_server("s2")   # same address, same data

Owns the state folder (`layout.py`). A lock in it keeps two commands from working on it at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from quorate_local import components, observing
from quorate_local.components import LOOPBACK, Secrets
from quorate_local.display import Display
from quorate_local.layout import Layout, read_json, write_json
from quorate_local.options import BadOptions, StackOptions
from quorate_local.process import (
    EXIT_PORT_IN_USE,
    ProcessFailed,
    ProcessSpec,
    Running,
    describe_exit,
    stop_all,
)
from quorate_local.release import Release

ONE_SHOT_TIMEOUT_S = 120.0  # a migration of a large database takes a while
CRASH_WAIT_S = 20.0  # backends of PostgreSQL end by themselves
PORT_ATTEMPTS = 3  # a free port may be taken between its choice and its use


class AlreadyRunning(Exception):
    """The stack in this state folder runs already."""


class Busy(Exception):
    """Another command is starting or stopping the stack in this state folder."""


def _is_coordinator_http(name: str) -> bool:
    return name.startswith("coordinator") and name.endswith("_http")


class NoSuchServer(Exception):
    """The stack has no replica server of that name."""


class Stack:
    """One stack, in one state folder. Not for use from several threads."""

    def __init__(self, options: StackOptions, display: Display | None = None) -> None:
        self.options = replace(options, state=options.state.resolve())
        self.layout = Layout(self.options.state)
        self._display = display or Display(quiet=True)
        self._secrets = Secrets(self.layout)
        self._running: dict[str, Running] = {}
        self._addresses: dict[str, str] = {}  # host:port
        self._urls: dict[str, str] = {}  # postgres and redis, with their passwords

    # -- the whole ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start everything and wait until it is ready.

        If a part fails, the started processes are stopped again and `ProcessFailed` names the part.
        """
        self._require_binaries()
        self.layout.create()
        with self._lock():
            alive = [running.name for running in Running.recorded(self.layout) if running.is_alive()]
            if alive:
                raise AlreadyRunning(self._describe_running(alive))
            for running in Running.recorded(self.layout):
                running.forget()
            self._secrets.create_admin_token()
            self._addresses = self._remembered_addresses()
            try:
                if self.options.observe:
                    self._start_observing()
                self._start_data_stores()
                self._prepare_database()
                self._start_coordinators()
                self._start_servers()
                self._start_api()
                for name in self.options.worker_names():
                    self._start_worker(name)
                for name in self.options.prober_names():
                    self._start_prober(name)
            except BaseException:
                self._display.line("  stopping the started processes")
                self._stop_processes()
                raise
            self._save()

    def stop(self) -> None:
        """Stop every process that `run/` names, in order. Without one it does nothing."""
        if not self.layout.root.exists():
            return
        with self._lock():
            self._stop_processes()

    def wipe(self) -> None:
        """Stop everything and remove the state folder."""
        self.stop()
        self.layout.wipe()

    def __enter__(self) -> Stack:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @classmethod
    def open(cls, options: StackOptions) -> Stack:
        """The running stack that another process started in `options.state`."""
        stack = cls(options)
        saved = read_json(stack.layout.stack_file) or {}
        stack._addresses = dict(saved.get("addresses", {}))
        stack._urls = dict(saved.get("urls", {}))
        stack._running = {running.name: running for running in Running.recorded(stack.layout)}
        return stack

    # -- addresses and processes -------------------------------------------------------------

    @property
    def api_url(self) -> str:
        """URL of the API, which serves the portal too."""
        return f"http://{self._addresses['api']}"

    @property
    def prometheus_url(self) -> str | None:
        """URL of the Prometheus beside it, if it was started with one."""
        address = self._addresses.get("prometheus")
        return f"http://{address}" if address and "prometheus" in self._running else None

    @property
    def addresses(self) -> dict[str, str]:
        """host:port of `coordinator_control`, `coordinator_http` (and of `coordinator-2_control`, …), `api` and each
        server; URLs of `postgres` and `redis`, with their passwords."""
        return {**self._addresses, **self._urls}

    def api_environment(self) -> dict[str, str]:
        """Variables of `quorate-api` and its commands, once the stack is started."""
        return self._make_api_environment(self._addresses["api"], self._coordinators("http"))

    def coordinators_http(self) -> list[str]:
        """host:port of each coordinator's HTTP interface."""
        return [self._addresses[f"{name}_http"] for name in self._coordinator_names()]

    def leader_name(self) -> str:
        """The coordinator that leads; the first one, if none does."""
        addresses = {name: self._addresses[f"{name}_http"] for name in self._coordinator_names()}
        return components.leading(addresses, self._secrets) or next(iter(addresses))

    def leader_http(self) -> str:
        """host:port of that one."""
        return self._addresses[f"{self.leader_name()}_http"]

    def _coordinator_names(self) -> list[str]:
        """Also of a stack that another process started."""
        return [name.removesuffix("_http") for name in self._addresses if _is_coordinator_http(name)]

    @property
    def redis_url(self) -> str:
        """With its password."""
        return self._urls["redis"]

    def processes(self) -> dict[str, Running]:
        return dict(self._running)

    def dead(self) -> list[str]:
        """Names of processes that should run and do not."""
        return [name for name, running in self._running.items() if not running.is_alive()]

    def admin_token(self) -> str:
        """The coordinator's admin token."""
        return self._secrets.admin_token.read_text().strip()

    def servers_by_address(self) -> dict[str, str]:
        return {self._addresses[name]: name for name in self.options.server_names() if name in self._addresses}

    # -- one server --------------------------------------------------------------------------

    def server_pids(self) -> list[int]:
        """Process ids of this stack's replica servers, dead ones too."""
        phase = components.PHASE_SERVER
        return [running.identity.pid for running in self._running.values() if running.phase == phase]

    def kill_server(self, name: str) -> None:
        """kill -9. It stays dead until `restart_server`."""
        self._server(name).kill()

    def restart_server(self, name: str) -> None:
        """Start it again on the same address and disk (stopping it first if it runs)."""
        self._server(name).stop()
        self._launch(self._server_spec(name), f"server {name}")
        self._addresses[name] = self._server_address(name)
        self._save()

    def crash(self, name: str) -> None:
        """End a process without a chance to tidy up, until `restart`. PostgreSQL takes its backends along."""
        running = self._running[name]
        if name != "postgres":
            running.kill()
            return
        running.identity.send(signal.SIGQUIT)  # an immediate shutdown: the next start recovers
        if not running.wait_exit(CRASH_WAIT_S):
            raise ProcessFailed(name, f"still ran {CRASH_WAIT_S:.0f} s after an immediate shutdown", running.log)

    def use_release(self, name: str, release: Release) -> None:
        """The process is of this release from its next start on."""
        self.options = replace(self.options, releases={**self.options.releases, name: release})

    def restart(self, name: str) -> None:
        """Stop and start a coordinator, `api`, `postgres`, `redis`, `prometheus`, a worker or a server again."""
        restarts: dict[str, Callable[[], None]] = {
            "postgres": self._start_postgres,
            "redis": self._start_redis,
            "api": self._start_api,
            "bridge": self._start_bridge,
            "prometheus": self._start_prometheus,
        }
        restarts |= {each: partial(self._start_coordinator, each) for each in self.options.coordinator_names()}
        restarts |= {worker: partial(self._start_worker, worker) for worker in self.options.worker_names()}
        restarts |= {prober: partial(self._start_prober, prober) for prober in self.options.prober_names()}
        if name not in restarts:
            self.restart_server(name)
            return
        self._running[name].stop()
        restarts[name]()
        self._save()

    # -- starting, part by part --------------------------------------------------------------

    def _start_data_stores(self) -> None:
        self._start_postgres()
        self._start_redis()

    def _start_observing(self) -> None:
        """The bridge gets the metrics of every process that starts after it."""
        self.layout.observe.mkdir(exist_ok=True)
        self._start_bridge()
        self._start_prometheus()

    def _start_bridge(self) -> None:
        self._launch(observing.bridge(self.layout, self._port(0, "bridge")), "bridge")
        found = read_json(observing.bridge_file(self.layout))
        assert found is not None, "the bridge was ready without its file"
        self._addresses["bridge"] = str(found["address"])
        self.options = replace(self.options, otlp_endpoint=f"http://{found['address']}")

    def _start_prometheus(self) -> None:
        port = self._port(self.options.prometheus_port, "prometheus") or components.free_port()
        listen = observing.loopback(port)
        self._launch(observing.prometheus(self.layout, self._addresses["bridge"], listen), "prometheus")
        self._addresses["prometheus"] = listen

    def _start_postgres(self) -> None:
        from quorate_api.embedded import postgres

        if self.options.database_url:
            self._urls["postgres"] = self.options.database_url
            self._display.line("  postgres      DATABASE_URL")
            return
        with self._display.step("starting postgres"):
            self._urls["postgres"] = postgres.start(self.layout.postgres, port=self.options.postgres_port)
        log = self.layout.postgres / "cluster" / "server.log"
        pid = postgres.pid(self.layout.postgres)
        self._adopt("postgres", pid, log, components.PHASE_POSTGRES, signal.SIGINT)  # SIGINT: a fast shutdown

    def _start_redis(self) -> None:
        from quorate_api.embedded import redis

        if self.options.redis_url:
            self._urls["redis"] = self.options.redis_url
            self._display.line("  redis         REDIS_URL")
            return
        with self._display.step("starting redis"):
            self._urls["redis"] = redis.start(self.layout.redis, port=self.options.redis_port)
        log = self.layout.redis / "server.log"
        self._adopt("redis", redis.pid(self.layout.redis), log, components.PHASE_REDIS, signal.SIGTERM)

    def _adopt(self, name: str, pid: int | None, log: Path, phase: int, stop_signal: signal.Signals) -> None:
        link = self.layout.log(name)
        link.unlink(missing_ok=True)
        link.symlink_to(log)
        if pid is None:
            raise ProcessFailed(name, "ended right after its start", log)
        self._running[name] = Running.adopt(name, pid, self.layout, phase, stop_signal)
        self._display.line(f"  {name:<13} ready")

    def _prepare_database(self) -> None:
        # The API's and the coordinator's addresses are unknown yet, and neither command calls them.
        env = self._make_api_environment("127.0.0.1:1", ["127.0.0.1:1"])
        env |= self.options.release_of("api").environment()
        self._run_once("keys", ["keys-init", "--dir", str(self.layout.secrets)], env)
        self._run_once("migrate", ["migrate"], env)

    def _run_once(self, name: str, arguments: list[str], env: dict[str, str]) -> None:
        log = self.layout.log(name)
        command = [components.quorate_api(), *arguments]
        merged = {**os.environ, **env}
        with self._display.step(f"running {name}"), log.open("ab") as out:
            try:
                done = subprocess.run(
                    command, env=merged, stdout=out, stderr=out, timeout=ONE_SHOT_TIMEOUT_S, check=False
                )
            except subprocess.TimeoutExpired as error:
                raise ProcessFailed(name, f"did not end within {ONE_SHOT_TIMEOUT_S:.0f} s", log) from error
        if done.returncode != 0:
            raise ProcessFailed(name, describe_exit(done.returncode), log, done.returncode)
        self._display.line(f"  {name:<13} done")

    def _start_coordinators(self) -> None:
        """Those with a log first, since it takes a majority of them to lead. They take the others in."""
        names = self.options.coordinator_names()
        self._refuse_fewer_coordinators(names)
        known = [name for name in names if (self.layout.coordinator_named(name) / "coordinator.log").exists()]
        for some in (known or names[:1], [name for name in names if name not in (known or names[:1])]):
            specs = [self._coordinator_spec(name) for name in some]
            for spec in specs:
                self._running[spec.name] = Running.start(spec, self.layout)
            for spec in specs:
                self._wait_ready(spec, spec.name)
                self._note_coordinator(spec.name)

    def _start_coordinator(self, name: str) -> None:
        self._launch(self._coordinator_spec(name), name)
        self._note_coordinator(name)

    def _refuse_fewer_coordinators(self, names: list[str]) -> None:
        """Without a majority of those that the state has, nothing would be decided."""
        there = [path.parent.name for path in self.layout.root.glob("coordinator*/coordinator.log")]
        if len(there) > len(names):
            raise BadOptions(f"this state has {len(there)} coordinators: start it with COORDINATORS={len(there)}")

    def _coordinator_spec(self, name: str) -> ProcessSpec:
        is_first = name == "coordinator"
        wanted = {"control": self.options.coordinator_control_port, "http": self.options.coordinator_http_port}
        ports = {
            kind: self._port(port if is_first else 0, f"{name}_{kind}")
            for kind, port in {**wanted, **({"members": 0} if self.options.coordinators > 1 else {})}.items()
        }
        others = [other for other in self.options.coordinator_names() if other != name]
        join = [self._addresses[f"{other}_members"] for other in others if f"{other}_members" in self._addresses]
        return components.coordinator(name, self.layout, self.options, self._secrets, ports, join)

    def _note_coordinator(self, name: str) -> None:
        found = read_json(self.layout.coordinator_named(name) / "addresses.json")
        assert found is not None, f"{name} was ready without its addresses.json"
        self._addresses |= {f"{name}_{kind}": address for kind, address in found.items()}

    def _coordinators(self, kind: str) -> list[str]:
        """Addresses of all coordinators: `control` or `http`."""
        return [self._addresses[f"{name}_{kind}"] for name in self.options.coordinator_names()]

    def _start_servers(self) -> None:
        """Start all at once: they wait for the disk and the coordinator, not for one another."""
        launched = []
        for name in self.options.server_names():
            spec = self._server_spec(name)
            self._running[name] = Running.start(spec, self.layout)
            launched.append(spec)
        for spec in launched:
            with self._display.step(f"waiting for server {spec.name}"):
                seconds = self._running[spec.name].wait_ready(spec)
            self._addresses[spec.name] = self._server_address(spec.name)
            self._display.line(f"  {'server ' + spec.name:<13} ready  {seconds:4.1f} s  {self._addresses[spec.name]}")

    def _server_spec(self, name: str) -> ProcessSpec:
        components.mint_join_token(self._coordinators("http"), self._secrets, name)
        port = self._port(self.options.server_port(name), name)
        return components.server(
            name,
            self.layout,
            self.options,
            self._secrets,
            f"{LOOPBACK}:{port}",
            self._coordinators("control"),
            self._urls["redis"],
        )

    def _server_address(self, name: str) -> str:
        ready = read_json(self.layout.server(name) / "ready.json")
        assert ready is not None, f"server {name} was ready without its ready.json"
        return str(ready["address"])

    def _start_api(self) -> None:
        """Start the API on a given port, because it must know its own public URL."""
        for attempt in range(1, PORT_ATTEMPTS + 1):
            port = self._port(self.options.api_port, "api") or components.free_port()
            listen = f"{LOOPBACK}:{port}"
            env = self._make_api_environment(listen, self._coordinators("http"))
            env |= self.options.release_of("api").environment()
            try:
                self._launch(components.api(self.layout, env, listen), "api")
            except ProcessFailed as failure:
                chosen_by_us = not self.options.api_port
                if failure.exit_code != EXIT_PORT_IN_USE or not chosen_by_us or attempt == PORT_ATTEMPTS:
                    raise
                self._addresses.pop("api", None)
                continue
            self._addresses["api"] = listen
            return

    def _start_worker(self, name: str) -> None:
        self._launch(
            components.worker(
                self.layout, name, {**self.api_environment(), **self.options.release_of(name).environment()}
            ),
            name,
        )

    def _start_prober(self, name: str) -> None:
        self._launch(components.prober(name, self.options, self._secrets, self._addresses["api"]), name)

    def _make_api_environment(self, listen: str, coordinators_http: list[str]) -> dict[str, str]:
        urls = self._urls
        return components.api_environment(
            self.layout, self.options, self._secrets, listen, coordinators_http, urls["postgres"], urls["redis"]
        )

    def _launch(self, spec: ProcessSpec, title: str) -> None:
        self._running[spec.name] = Running.start(spec, self.layout)
        self._wait_ready(spec, title)

    def _wait_ready(self, spec: ProcessSpec, title: str) -> None:
        with self._display.step(f"starting {title}"):
            seconds = self._running[spec.name].wait_ready(spec)
        self._display.line(f"  {title:<13} ready  {seconds:4.1f} s")

    # -- helpers -----------------------------------------------------------------------------

    def _port(self, wanted: int, name: str) -> int:
        """The requested port; else this part's last one, if it is free; else 0.

        A kept port keeps the addresses valid that people and clients have noted.
        """
        if wanted:
            return wanted
        before = self._addresses.get(name)
        port = int(before.rsplit(":", 1)[1]) if before else 0
        return port if port and components.port_is_free(port) else 0

    def _server(self, name: str) -> Running:
        if name not in self.options.server_names() or name not in self._running:
            raise NoSuchServer(f"there is no server {name}; there are {', '.join(self.options.server_names())}")
        return self._running[name]

    def _require_binaries(self) -> None:
        for name in ("quorate-coordinator", "quorate-replica"):
            components.binary(self.options, name)
        components.quorate_api()
        self.options.profile_file()
        if self.options.observe:
            observing.require()

    def _remembered_addresses(self) -> dict[str, str]:
        return dict((read_json(self.layout.stack_file) or {}).get("addresses", {}))

    def _describe_running(self, alive: list[str]) -> str:
        where = self._remembered_addresses().get("api")
        recorded = [running.name for running in Running.recorded(self.layout)]
        missing = [name for name in recorded if name not in alive]
        text = f"A stack runs in {self.layout.root} already"
        text += f": http://{where}" if where else ""
        if missing:
            text += f"\nNot running of it: {', '.join(missing)}"
        return text + "\n`make down` stops it; STATE=… gives another stack a folder of its own."

    def _save(self) -> None:
        processes = {name: running.identity.to_json() for name, running in self._running.items()}
        value = {"version": 1, "addresses": self._addresses, "urls": self._urls, "processes": processes}
        write_json(self.layout.stack_file, value, 0o600)  # the URLs hold passwords

    def _stop_processes(self) -> None:
        recorded = Running.recorded(self.layout)
        ours = [self._running.get(running.name, running) for running in recorded]
        for phase in components.STOP_ORDER:
            members = [running for running in ours if running.phase == phase]
            if not members:
                continue
            names = ", ".join(running.name for running in members)
            with self._display.step(f"stopping {names}"):
                results = stop_all(members)
            for running, how in results:
                self._display.line(f"  {running.name:<13} {how}")
        self._running.clear()

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        with (self.layout.root / "lock").open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy(f"another command is starting or stopping the stack in {self.layout.root}") from None
            yield
