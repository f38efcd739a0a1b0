"""Options of a local stack, each with its default and its reason."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import disk_usage

from quorate_local.release import Release

REPOSITORY = Path(__file__).resolve().parents[3]
# The servers, the load driver and quorate-planner. Tests name another build of them (infra/setup/rust.sh).
BINARIES = Path(os.environ.get("QUORATE_BINARIES", REPOSITORY / "build" / "bin"))

SERVERS_DEFAULT = 5  # degree 3, one server lost, and still a choice of replacements
PROBERS_MAX = 8  # a second one is for when the first one's connection fails
WORKERS_MAX = 8  # each judges and bills for all customers; a second one is for when the first fails
SERVERS_MAX = 32  # a bound for one machine, not for a fleet
COORDINATORS = (1, 3, 5)  # an even number survives no more failures than one less
SHARDS_PER_SERVER_DEFAULT = 1  # many servers share this machine's few cores


SERVER_MEMORY_BYTES_MIN = 320 << 20  # quorate-replica refuses less (limits.rs)


def memory_bytes() -> int:
    """Memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def free_disk_bytes(folder: Path) -> int:
    """Bytes free on the disk of a folder that need not exist yet."""
    found = next(parent for parent in [folder.absolute(), *folder.absolute().parents] if parent.exists())
    return disk_usage(found).free


class BadOptions(Exception):
    """The options are impossible; the message names the remedy."""


@dataclass(frozen=True)
class ServerResources:
    """The resource vector that each server announces; None leaves it to the server."""

    cpu_cores: float | None = None
    network_bytes_per_s: int | None = None
    storage_io_per_s: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None

    def flags(self) -> list[str]:
        pairs = [
            ("--cpu", self.cpu_cores),
            ("--network-bytes-per-s", self.network_bytes_per_s),
            ("--storage-io-per-s", self.storage_io_per_s),
            ("--memory-bytes", self.memory_bytes),
            ("--disk-bytes", self.disk_bytes),
        ]
        return [text for flag, value in pairs if value is not None for text in (flag, str(value))]


@dataclass(frozen=True)
class StackOptions:
    """A port of 0 means any free one. `database_url`/`redis_url` replace the embedded servers."""

    state: Path = REPOSITORY / ".quorate"
    servers: int = SERVERS_DEFAULT
    coordinators: int = 1
    workers: int = 1
    probers: int = 0
    bin_dir: Path = BINARIES
    portal_dir: Path = REPOSITORY / "portal" / "dist"
    profile: Path | None = None
    database_url: str | None = None
    redis_url: str | None = None
    otlp_endpoint: str | None = None
    observe: bool = False  # Prometheus beside it, to which all processes send their metrics
    prometheus_port: int = 0
    api_port: int = 0
    coordinator_control_port: int = 0
    coordinator_http_port: int = 0
    postgres_port: int = 0
    redis_port: int = 0
    server_port_base: int = 0
    plaintext: bool = False  # servers accept clients and peers without TLS too
    plaintext_links: bool = False  # servers connect to one another without TLS
    certificate_life_s: int | None = None  # servers' certificates; the coordinator's default is a day
    sends_mail: bool = False  # into `mail/`, for people who sign up: without it, addresses count as verified
    shards_per_server: int = SHARDS_PER_SERVER_DEFAULT
    server_resources: ServerResources = field(default_factory=ServerResources)
    coordinator_env: Mapping[str, str] = field(default_factory=dict)  # besides its flags; every flag has a variable
    server_env: Mapping[str, str] = field(default_factory=dict)
    # Processes of another release, by name: servers, coordinators, the API, workers.
    releases: Mapping[str, Release] = field(default_factory=dict)
    # Group ids of servers and probers, by name: a packet filter can cut off any of them. Only root may set them.
    group_ids: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.servers <= SERVERS_MAX:  # 0: the fleet is started separately
            raise BadOptions(f"SERVERS must be 0 to {SERVERS_MAX}, not {self.servers}")
        if self.coordinators not in COORDINATORS:
            raise BadOptions(f"COORDINATORS must be 1, 3 or 5, not {self.coordinators}")
        if not 1 <= self.workers <= WORKERS_MAX:
            raise BadOptions(f"WORKERS must be 1 to {WORKERS_MAX}, not {self.workers}")
        if not 0 <= self.probers <= PROBERS_MAX:
            raise BadOptions(f"PROBERS must be 0 to {PROBERS_MAX}, not {self.probers}")
        if self.plaintext_links and not self.plaintext:
            raise BadOptions("--plaintext-links needs --plaintext: servers must accept their own links")
        last_server_port = self.server_port_base + self.servers - 1
        for name, port in [
            ("API_PORT", self.api_port),
            ("PROMETHEUS_PORT", self.prometheus_port),
            ("COORDINATOR_PORT", self.coordinator_control_port),
            ("COORDINATOR_HTTP_PORT", self.coordinator_http_port),
            ("POSTGRES_PORT", self.postgres_port),
            ("REDIS_PORT", self.redis_port),
            ("SERVER_PORTS", last_server_port if self.server_port_base else 0),
        ]:
            if not 0 <= port <= 65535:
                raise BadOptions(f"{name} must be 0 (any free port) to 65535, not {port}")

    @classmethod
    def from_environment(cls, **overrides: object) -> StackOptions:
        """Defaults, then DATABASE_URL, REDIS_URL and the OTLP endpoint of the environment,
        then `overrides`."""
        values: dict[str, object] = {
            "database_url": os.environ.get("DATABASE_URL") or None,
            "redis_url": os.environ.get("REDIS_URL") or None,
            "otlp_endpoint": os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or None,
        }
        values.update(overrides)
        if values.get("observe") and values["otlp_endpoint"]:
            raise BadOptions(
                "OBSERVE=1 takes the metrics itself: unset OTEL_EXPORTER_OTLP_ENDPOINT, or leave OBSERVE out"
            )
        return cls(**values)  # type: ignore[arg-type]

    def resources_of_each(self) -> ServerResources:
        """Each server's resources. Memory and disk of this machine are divided among the servers: each would else offer
        all of it."""
        chosen, servers = self.server_resources, max(self.servers, SERVERS_DEFAULT)
        return replace(
            chosen,
            memory_bytes=chosen.memory_bytes or max(memory_bytes() * 3 // 4 // servers, SERVER_MEMORY_BYTES_MIN),
            disk_bytes=chosen.disk_bytes or free_disk_bytes(self.state) // servers,
        )

    def release_of(self, process: str) -> Release:
        return self.releases.get(process) or Release(self.bin_dir)

    def server_names(self) -> list[str]:
        return [f"s{number}" for number in range(1, self.servers + 1)]

    def coordinator_names(self) -> list[str]:
        return ["coordinator", *(f"coordinator-{number}" for number in range(2, self.coordinators + 1))]

    def worker_names(self) -> list[str]:
        return ["worker", *(f"worker-{number}" for number in range(2, self.workers + 1))]

    def prober_names(self) -> list[str]:
        return [f"prober-{number}" for number in range(1, self.probers + 1)]

    def server_port(self, name: str) -> int:
        return self.server_port_base + int(name[1:]) - 1 if self.server_port_base else 0

    def profile_file(self) -> Path:
        """The cost profile: the one given, this machine's own, or the one in the repository."""
        candidates = [
            self.profile,
            REPOSITORY / "loadtest" / "profiles" / "local.json",
            REPOSITORY / "services" / "crates" / "placement" / "profiles" / "default.json",
        ]
        for candidate in candidates:
            if candidate is not None and candidate.exists():
                return candidate
        raise BadOptions("no cost profile found: expected loadtest/profiles/local.json")
