"""A fleet goes from the release before to the present one and back, under load. Is anything lost? How long is the gap?

Three coordinators, five servers, API and worker begin as the release before (`infra/release/predecessor.toml`). They
are replaced one by one as `docs/operating/upgrades.md` says: coordinators, the leader last; servers, each restarted in
place once all groups are whole; then API and worker. The way back is the same one. Then all go forward again, and the
fleet's version is raised. Four clients append to two groups throughout, one of each durability: Python and JavaScript,
of both releases. At the end everything is read back. Each acknowledged entry must be at its offset, and none may be
there twice. The invoice must have as many entries as the logs.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quorate
from quorate_claims.claim import Conditions
from quorate_harness.customer import billed_entries
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_local import components
from quorate_local.options import BINARIES, REPOSITORY
from quorate_local.release import NoPredecessor, Release, predecessor

COORDINATORS, SERVERS = 3, 5
RESERVED_PER_S = 2_000
GAP_GOAL_MS = 1_000
WARM_UP_S, BETWEEN_S, STOP_S = 3.0, 1.0, 30.0
WHOLE_TIMEOUT_S = 60.0
BILLED_WITHIN_S = 30.0
READ_ENTRIES = 4_096
FOLDER = Path(__file__).parent


@dataclass
class Client:
    """A process that appends, and what it wrote about it."""

    name: str
    process: subprocess.Popen[bytes]
    results: Path

    def appends(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.results.read_text().splitlines()]


def measure(conditions: Conditions) -> list[Figure]:
    display = conditions.display
    with display.step("building the release before this one"):
        try:
            before = predecessor(REPOSITORY, REPOSITORY / "build" / "predecessor")
        except NoPredecessor as missing:
            raise MeasurementFailed(str(missing)) from missing
    present = Release(BINARIES, REPOSITORY)
    coordinators = ["coordinator", *(f"coordinator-{n}" for n in range(2, COORDINATORS + 1))]
    names = [*coordinators, *(f"s{n}" for n in range(1, SERVERS + 1)), "api", "worker"]
    releases = dict.fromkeys(names, before)
    forward, back = ("forward", present), ("back", before)
    ways = [forward] if conditions.quick else [forward, back, forward]
    with fleet(conditions.folder, display, SERVERS, coordinators=COORDINATORS, releases=releases) as servers:
        groups = [
            servers.create_group(name, durability, RESERVED_PER_S)
            for name, durability in (("in-memory", "in_memory"), ("on-disk", "persistent"))
        ]
        with _clients(servers, conditions.folder, groups, {"before": before, "present": present}) as clients:
            time.sleep(WARM_UP_S)
            for way, release in ways:
                display.line(f"  {way}")
                _roll(servers, release, groups)
            _raise_version(servers)
            time.sleep(WARM_UP_S)
        logs = {group: asyncio.run(_read(servers, group)) for group in groups}
        lost = sum(_lost(entries, group, clients) for group, entries in logs.items())
        off = sum(_billed_off(servers, group, len(entries)) for group, entries in logs.items())
    appends = {client.name: client.appends() for client in clients}
    gaps = {name: _longest_gap_ms(lines) for name, lines in appends.items()}
    failed = [line for lines in appends.values() for line in lines if "error" in line]
    for name, gap in gaps.items():
        display.line(f"  {name}: {len(appends[name])} appends, longest gap {gap:,.0f} ms")
    for line in failed[:3]:
        display.line(f"  failed: {line['error']}")
    note = f"{len(ways)} times through {len(names)} processes"
    return [
        Figure("upgrade_appends_lost", lost, "entries", 0, note=note),
        Figure("upgrade_appends_failed", len(failed), "appends", 0, note=note),
        Figure("upgrade_billed_off", off, "entries", 0, note=note),
        Figure("upgrade_longest_gap_ms", round(max(gaps.values()), 1), "ms", GAP_GOAL_MS, note=note),
    ]


def _roll(servers: Fleet, release: Release, groups: list[str]) -> None:
    """All processes, one by one, in the order of the procedure."""
    stack = servers.stack
    followers = [name for name in stack.options.coordinator_names() if name != stack.leader_name()]
    for name in followers:
        _restart(servers, name, release)
    leader = next(name for name in stack.options.coordinator_names() if name not in followers)
    _step_down(servers, leader)
    _restart(servers, leader, release)
    for name in servers.names():
        servers.wait_whole(*groups, timeout_s=WHOLE_TIMEOUT_S)
        _restart(servers, name, release)
    servers.wait_whole(*groups, timeout_s=WHOLE_TIMEOUT_S)
    for name in ("api", "worker"):
        _restart(servers, name, release)


def _restart(servers: Fleet, name: str, release: Release) -> None:
    servers.display.progress(f"  {name}")
    servers.stack.use_release(name, release)
    if name in servers.names():
        servers.restart_server(name)
    else:
        servers.stack.restart(name)
    time.sleep(BETWEEN_S)


def _step_down(servers: Fleet, leader: str) -> None:
    with servers.coordinator_client(10.0) as http:
        http.post("/v1/quorum/step-down", json={}).raise_for_status()
    servers.wait(lambda: servers.stack.leader_name() != leader, "another coordinator to lead")


def _raise_version(servers: Fleet) -> None:
    """By the operator's command. Everything must be able to read it."""
    secrets = components.Secrets(servers.stack.layout)
    command = [
        components.binary(servers.stack.options, "quorate-coordinator"),
        *("fleet-version", "--raise", "--coordinators", servers.stack.leader_http()),
        *("--admin-token-file", str(secrets.admin_token)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=False)
    if done.returncode != 0:
        raise MeasurementFailed(f"the fleet's version was not raised: {done.stdout}{done.stderr}")
    servers.display.line(f"  {done.stdout.strip()}")


@contextmanager
def _clients(servers: Fleet, folder: Path, groups: list[str], releases: dict[str, Release]) -> Iterator[list[Client]]:
    """They run until the block ends."""
    env = {
        **os.environ,
        "QUORATE_API_URL": servers.customer.api_url,
        "QUORATE_API_KEY": servers.customer.api_key,
    }
    clients = []
    for which, release in releases.items():
        assert release.sources is not None, "both have their checkouts"
        sdk = release.sources / "sdk"
        for language, command in (
            ("python", [sys.executable, str(FOLDER / "appender.py"), str(sdk / "python" / "src")]),
            ("js", ["node", str(FOLDER / "appender.mjs"), str(sdk / "js" / "dist" / "index.js")]),
        ):
            name = f"{language}-{which}"
            results = folder / f"{name}.jsonl"
            results.unlink(missing_ok=True)
            log = (folder / f"{name}.log").open("wb")
            process = subprocess.Popen([*command, name, str(results), *groups], env=env, stdout=log, stderr=log)
            clients.append(Client(name, process, results))
    try:
        yield clients
        ended = [client.name for client in clients if client.process.poll() is not None]
        if ended:
            raise MeasurementFailed(f"clients ended by themselves: {', '.join(ended)}; their logs are in {folder}")
    finally:
        for client in clients:
            client.process.terminate()
        for client in clients:
            try:
                client.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                client.process.kill()


def _lost(entries: list[str], group: str, clients: list[Client]) -> int:
    """Acknowledged entries that are not where they should be. Doubles and a wrong order end the measurement."""
    doubled = [text for text, times in Counter(entries).items() if times > 1]
    if doubled:
        raise MeasurementFailed(f"{len(doubled)} entries are there twice, such as {doubled[0]}")
    lost = 0
    for client in clients:
        acked = [line for line in client.appends() if line["group"] == group and "offset" in line]
        if not acked:
            raise MeasurementFailed(f"{client.name} appended nothing to {group}")
        offsets = [line["offset"] for line in acked]
        if offsets != sorted(offsets):
            raise MeasurementFailed(f"entries of {client.name} are not in their order")
        wanted = ((line["offset"], f"{client.name} {line['number']}") for line in acked)
        lost += sum(offset >= len(entries) or entries[offset] != text for offset, text in wanted)
    return lost


def _billed_off(servers: Fleet, group: str, entries: int) -> int:
    """Entries that are billed and not in the log, or the reverse. The last telemetry takes some seconds."""
    invoice = servers.customer.settled_invoice(group, entries, BILLED_WITHIN_S)
    return abs(billed_entries(invoice, group) - entries)


async def _read(servers: Fleet, group: str) -> list[str]:
    """The whole log."""
    found: list[str] = []
    async with await quorate.connect_group(servers.customer.api_url, servers.customer.api_key, group) as log:
        end = (await log.status()).commit_offset
        while len(found) < end:
            read = await log.read(len(found), max_entries=READ_ENTRIES)
            found += [entry.data.decode() for entry in read.entries]
    return found


def _longest_gap_ms(appends: list[dict[str, Any]]) -> float:
    """Between two acknowledgements of one group."""
    longest = 0.0
    last: dict[str, float] = {}
    for line in appends:
        if "offset" not in line:
            continue
        before = last.get(line["group"], line["at_s"])
        longest = max(longest, line["at_s"] - before)
        last[line["group"]] = line["at_s"]
    return longest * 1_000
