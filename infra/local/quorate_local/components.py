"""Every process of the stack as a `ProcessSpec`: its command, environment and sign of readiness.

Only this file knows flags and variables; docs/internals/processes.md explains them.
"""

from __future__ import annotations

import json
import secrets
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

from quorate_local.layout import Layout, read_json, write_text
from quorate_local.options import BadOptions, StackOptions
from quorate_local.process import ProcessSpec, Running

LOOPBACK = "127.0.0.1"
HTTP_TIMEOUT_S = 2.0
COORDINATOR_READY_S = 20.0
SERVER_READY_S = 30.0  # a server with a large journal scans it first
API_READY_S = 45.0  # Python imports, on a busy machine
WORKER_READY_S = 45.0
PROBER_READY_S = 30.0
JOIN_TOKEN_TTL_S = 600
SIGNUPS_OF_TESTS = "5000/hour"  # all of them come from this machine
LEADER_WAIT_S, LEADER_PAUSE_S = 10.0, 0.1

PHASE_POSTGRES, PHASE_REDIS, PHASE_COORDINATOR, PHASE_SERVER, PHASE_API, PHASE_WORKER, PHASE_PROBER = range(7)
PHASE_BRIDGE, PHASE_PROMETHEUS = -2, -1  # before all others, which send them their metrics
# The order is not simply the reverse. A coordinator that sees its servers leave one by one takes them for failed and
# shrinks every chain to its last server. It stops before them, and finds them all at the next start.
STOP_ORDER = (
    PHASE_PROBER, PHASE_WORKER, PHASE_API, PHASE_COORDINATOR, PHASE_SERVER, PHASE_REDIS, PHASE_POSTGRES,
    PHASE_PROMETHEUS, PHASE_BRIDGE,
)  # fmt: skip


class Secrets:
    """The files in `secrets/` (mode 0700, each file 0600)."""

    def __init__(self, layout: Layout) -> None:
        self.admin_token = layout.secrets / "coordinator-admin-token"
        self.fleet_key = layout.secrets / "fleet.key"  # the first coordinator makes it
        self.api_secret = layout.secrets / "api-secret"
        self.operator_token = layout.secrets / "operator-token"
        self.prober_token = layout.secrets / "prober-token"
        self.signing_key = layout.secrets / "token-signing-key.pem"
        self.public_keys = layout.secrets / "token-public-keys.json"
        self._folder = layout.secrets

    def create_admin_token(self) -> None:
        """Make the coordinator's secret; `quorate-api keys-init` makes the other files."""
        if not self.admin_token.exists():
            write_text(self.admin_token, secrets.token_hex(32) + "\n", 0o600)

    def join_token(self, server: str) -> Path:
        return self._folder / f"join-{server}"


def coordinator(
    name: str,
    layout: Layout,
    options: StackOptions,
    keys: Secrets,
    ports: dict[str, int],
    join: Sequence[str] = (),
    host: str = LOOPBACK,
) -> ProcessSpec:
    """`ports`: `control`, `http` and, unless it is alone, `members`; 0 lets it choose. `join`: other coordinators."""
    data_dir = layout.coordinator_named(name)
    data_dir.mkdir(parents=True, exist_ok=True)
    addresses = data_dir / "addresses.json"
    addresses.unlink(missing_ok=True)
    command = [
        binary(options, "quorate-coordinator", name),
        *("--data-dir", str(data_dir)),
        *("--listen-control", f"{host}:{ports['control']}"),
        *("--listen-http", f"{host}:{ports['http']}"),
        *(["--listen-members", f"{host}:{ports['members']}"] if "members" in ports else []),
        *(["--join", ",".join(join)] if join else []),
        *("--fleet-key-file", str(keys.fleet_key)),
        *("--profile", str(options.profile_file())),
        *("--token-public-keys", str(keys.public_keys)),
        *("--admin-token-file", str(keys.admin_token)),
        *(["--certificate-life-s", str(options.certificate_life_s)] if options.certificate_life_s else []),
        *_otlp_flags(options),
    ]

    def ready(_: Running) -> bool:
        found = read_json(addresses)
        return found is not None and _has_vote(found["http"], keys)

    env = options.coordinator_env
    return ProcessSpec(name, command, ready, PHASE_COORDINATOR, env, COORDINATOR_READY_S)


def _has_vote(address: str, keys: Secrets) -> bool:
    """Whether a coordinator knows who leads, and counts itself."""
    view = coordinator_call(address, keys, "GET", "/v1/quorum")
    own = [each for each in view["members"] if each["member"] == view["member"]]
    return view["leader"] is not None and any(each["votes"] for each in own)


def server(
    name: str,
    layout: Layout,
    options: StackOptions,
    keys: Secrets,
    listen: str,
    control: Sequence[str],
    redis_url: str,
) -> ProcessSpec:
    """A replica server. `listen`: host:port; `control`: of all coordinators."""
    data_dir = layout.server(name)
    data_dir.mkdir(parents=True, exist_ok=True)
    ready_file = data_dir / "ready.json"
    ready_file.unlink(missing_ok=True)
    command = [
        binary(options, "quorate-replica", name),
        *("--data-dir", str(data_dir)),
        *("--coordinator", ",".join(control)),
        *("--join-token-file", str(keys.join_token(name))),
        *("--listen", listen),
        *("--name", name),
        *("--shards", str(options.shards_per_server)),
        *("--failure-domain", name),
        *options.resources_of_each().flags(),
        *(["--allow-plaintext"] if options.plaintext else []),
        *(["--plaintext-links"] if options.plaintext_links else []),
        *_otlp_flags(options),
    ]
    # The URL is not a flag: it holds a password, and arguments are public.
    env = {**options.server_env, "QUORATE_REDIS_URL": redis_url}

    def ready(_: Running) -> bool:
        return read_json(ready_file) is not None

    group_id = options.group_ids.get(name)
    return ProcessSpec(name, command, ready, PHASE_SERVER, env, SERVER_READY_S, group_id=group_id)


def api(layout: Layout, env: dict[str, str], listen: str) -> ProcessSpec:
    def ready(_: Running) -> bool:
        return http_status(f"http://{listen}/v1/ready") == 200

    return ProcessSpec("api", [quorate_api(), "api"], ready, PHASE_API, env, API_READY_S)


def worker(layout: Layout, name: str, env: dict[str, str]) -> ProcessSpec:
    def ready(running: Running) -> bool:
        return "worker ready" in running.output()

    return ProcessSpec(name, [quorate_api(), "worker"], ready, PHASE_WORKER, env, WORKER_READY_S)


def prober(name: str, options: StackOptions, keys: Secrets, api: str) -> ProcessSpec:
    """`api`: host:port."""
    command = [python_command("quorate-prober"), "--api", f"http://{api}", "--name", name]
    command += ["--token-file", str(keys.prober_token)]

    def ready(running: Running) -> bool:
        return "prober ready" in running.output()

    return ProcessSpec(
        name, command, ready, PHASE_PROBER, ready_timeout_s=PROBER_READY_S, group_id=options.group_ids.get(name)
    )


def api_environment(
    layout: Layout,
    options: StackOptions,
    keys: Secrets,
    listen: str,
    coordinators_http: Sequence[str],
    database_url: str,
    redis_url: str,
) -> dict[str, str]:
    """Environment of `quorate-api api`, `worker` and `migrate`."""
    env = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "QUORATE_LISTEN": listen,
        "QUORATE_PUBLIC_URL": f"http://{listen}",
        "QUORATE_COORDINATOR_URL": ",".join(f"http://{address}" for address in coordinators_http),
        "QUORATE_COORDINATOR_TOKEN_FILE": str(keys.admin_token),
        "QUORATE_TOKEN_SIGNING_KEY_FILE": str(keys.signing_key),
        "QUORATE_SECRET_FILE": str(keys.api_secret),
        "QUORATE_OPERATOR_TOKEN_FILE": str(keys.operator_token),
        "QUORATE_PROBER_TOKEN_FILE": str(keys.prober_token),
        "QUORATE_WEBHOOK_NETWORKS": "127.0.0.0/8",  # a receiver under development is on this machine
    }
    if options.plaintext:
        env["QUORATE_PLAINTEXT_ALLOWED"] = "true"
    if options.sends_mail:
        env |= {"QUORATE_MAIL": "folder", "QUORATE_MAIL_DIR": str(layout.mail)}
    else:
        env["QUORATE_SIGNUPS_PER_ADDRESS"] = SIGNUPS_OF_TESTS
    if (options.portal_dir / "index.html").exists():
        env["QUORATE_PORTAL_DIR"] = str(options.portal_dir)
    if options.otlp_endpoint:
        env["OTEL_EXPORTER_OTLP_ENDPOINT"] = options.otlp_endpoint
    return env


def mint_join_token(coordinators_http: Sequence[str], keys: Secrets, server_name: str) -> None:
    """Put a token of the coordinator that leads into a 0600 file; one server may join with it, once."""
    until = time.monotonic() + LEADER_WAIT_S
    for address in cycle(coordinators_http):
        body = {"ttl_s": JOIN_TOKEN_TTL_S, "name": server_name}
        try:
            token = coordinator_call(address, keys, "POST", "/v1/join-tokens", body)["token"]
        except OSError:  # away, or another one leads
            if time.monotonic() > until:
                raise
            time.sleep(LEADER_PAUSE_S)
            continue
        write_text(keys.join_token(server_name), token + "\n", 0o600)
        return


def leading(addresses: Mapping[str, str], keys: Secrets) -> str | None:
    """The coordinator that leads in the greatest term. `addresses`: of their HTTP interfaces, by name."""
    found: list[tuple[int, str]] = []
    for name, address in addresses.items():
        with suppress(OSError):
            view = coordinator_call(address, keys, "GET", "/v1/quorum")
            if view["role"] == "leader":
                found.append((view["term"], name))
    return max(found)[1] if found else None


def coordinator_call(
    address: str,
    keys: Secrets,
    method: str,
    path: str,
    body: dict[str, Any] | None = None,
    timeout_s: float = HTTP_TIMEOUT_S,
) -> dict[str, Any]:
    """A call to a coordinator on this machine. `OSError` without a good answer."""
    request = urllib.request.Request(
        f"http://{address}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {keys.admin_token.read_text().strip()}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=timeout_s) as response:
        return dict(json.load(response))


def binary(options: StackOptions, name: str, process: str = "") -> str:
    """Of the release that the process has."""
    path = options.release_of(process).bin_dir / name
    if not path.exists():
        raise BadOptions(f"{path} is not there yet; `make build` makes it, for tests `make test`")
    return str(path)


def quorate_api() -> str:
    return python_command("quorate-api")


def python_command(name: str) -> str:
    """A command of this virtual environment; PATH might hold another."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise BadOptions(f"the command {name} is not installed here; `make setup` installs it")
    return str(path)


def free_port() -> int:
    """A port without a listener. Another process may take it before it is used: callers retry."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def http_status(url: str) -> int:
    """The status of a GET; `OSError` without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=HTTP_TIMEOUT_S) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def _otlp_flags(options: StackOptions) -> list[str]:
    return ["--otlp-endpoint", options.otlp_endpoint] if options.otlp_endpoint else []
