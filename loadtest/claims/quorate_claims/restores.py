"""The coordinator is started on older copies of its log, under load: does any epoch get a second meaning?

Two groups receive appends at a steady rate all the time. Each round copies the log, and loses and returns the server
of a head, so that epochs follow. Meanwhile, at a random point, the coordinator is killed, and started on a copy of some
rounds before. It must end by itself with exit code 6 and have issued nothing. Then the newest log is put back.

Counted as split: an epoch of which two chains were logged, a copy on which an epoch was issued though a server knew
more, and any entry that is not there once and in order, when all groups are read back.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet, log_lines
from quorate_harness.quantiles import quantile
from quorate_harness.steady import Steady
from quorate_local.process import ProcessFailed

RESTORES = 210
RESTORES_QUICK = 3
RESTORES_PER_LOSS = 3
SERVERS = 5
RATE_PER_S = 1_000
RESERVED_PER_S = 4_000
COPIES_MAX = 5
EXIT_BEHIND = 6
FILES = ("coordinator.log", "coordinator.mark")
WHOLE_FOLDER = 0.8  # of the restores
FOUND_TIMEOUT_S = 12.0
RECOVER_TIMEOUT_S = 60.0
STARTS_MAX = 3
POINT_S = 1.2  # restores fall into the loss of a head, its replacement and its return
DURABILITIES = ("persistent", "in_memory")


@dataclass
class Seen:
    """What became of the restores."""

    found_s: list[float] = field(default_factory=list)
    equal: int = 0  # the copy was as new as what any server had been told
    split: list[str] = field(default_factory=list)

    @property
    def restores(self) -> int:
        return len(self.found_s) + self.equal


def measure(conditions: Conditions) -> list[Figure]:
    wanted = conditions.trials or (RESTORES_QUICK if conditions.quick else RESTORES)
    display = conditions.display
    seen = Seen()
    log = {"QUORATE_LOG": "info,quorate_replica::shard=debug"}
    with fleet(conditions.folder, display, SERVERS, server_env=log) as servers:
        groups = {
            durability: servers.create_group(durability.replace("_", "-"), durability, RESERVED_PER_S)
            for durability in DURABILITIES
        }
        rate = ("--rate", str(RATE_PER_S))
        loads = [Steady(servers, durability, [groups[durability]], *rate) for durability in DURABILITIES]
        try:
            copies: list[Path] = []
            while seen.restores < wanted:
                display.progress(f"  restore {seen.restores + 1} of {wanted}   split so far {len(seen.split)}")
                _round(servers, groups, copies, seen, min(RESTORES_PER_LOSS, wanted - seen.restores))
            display.progress("  reading everything back")
            for load in loads:
                load.end()
                try:
                    load.verify()
                except MeasurementFailed as failed:
                    seen.split.append(str(failed))
        finally:
            for load in loads:
                load.stop()
        seen.split += chains_of_two(servers)
    for line in seen.split:
        display.line(f"  SPLIT: {line}")
    return _figures(seen)


def _round(servers: Fleet, groups: dict[str, str], copies: list[Path], seen: Seen, restores: int) -> None:
    """Copies the log, loses a head, and restores copies meanwhile."""
    servers.wait_whole(*groups.values(), timeout_s=RECOVER_TIMEOUT_S)
    _keep_copy(servers, copies)
    group_id = random.choice(list(groups.values()))
    address = servers.group(group_id)["replicas"][0]["address"]
    victim = servers.stack.servers_by_address()[address]
    servers.stack.kill_server(victim)
    for number in range(restores):
        time.sleep(random.uniform(0, POINT_S))
        _restore(servers, random.choice(copies), seen)
        if number == 0:
            _bring_back(servers, victim)


def _bring_back(servers: Fleet, victim: str) -> None:
    """Its start asks the coordinator for a join token, which may take that too long just after its own start."""
    for attempt in range(STARTS_MAX):
        try:
            servers.stack.restart_server(victim)
        except TimeoutError:
            if attempt + 1 == STARTS_MAX:
                raise
        else:
            return


def _keep_copy(servers: Fleet, copies: list[Path]) -> None:
    copy = servers.folder / "copies" / str(time.monotonic_ns())
    _copy(servers.stack.layout.coordinator, copy)
    copies.append(copy)
    if len(copies) > COPIES_MAX:
        shutil.rmtree(copies.pop(0))


def _restore(servers: Fleet, copy: Path, seen: Seen) -> None:
    """Starts the coordinator on the copy, and, when it ends, on the newest log again."""
    home, newest = servers.stack.layout.coordinator, servers.folder / "newest"
    servers.stack.processes()["coordinator"].kill()
    _copy(home, newest)
    # A mark that stays tells at once that the log alone is older. Only servers can tell when the mark is as old.
    _copy(copy, home, FILES if random.random() < WHOLE_FOLDER else FILES[:1])
    told = servers.log("coordinator")
    begin, begun = told.stat().st_size, time.monotonic()
    try:
        servers.stack.restart("coordinator")
    except ProcessFailed as failed:
        if failed.exit_code != EXIT_BEHIND:
            raise
    if _end_of(told, begin) == "over":
        # Nobody knew more. The copy is the newest log from here on, unless it lacks epochs that were issued.
        seen.equal += 1
        if _epochs(newest) != _epochs(copy):
            seen.split.append(f"a coordinator went on with a copy that lacks epochs: {copy.name}")
        return
    seen.found_s.append(time.monotonic() - begun)
    _copy(newest, home)
    servers.stack.restart("coordinator")


def _end_of(told: Path, begin: int) -> str:
    """Whether it ended as behind, or its roll call ended."""
    deadline = time.monotonic() + FOUND_TIMEOUT_S
    while time.monotonic() < deadline:
        lines = [line.get("fields", line) for _, line in log_lines(told, begin)]
        if any(line.get("exit_code") == EXIT_BEHIND for line in lines):
            return "behind"
        if any(line.get("message") == "roll call over" for line in lines):
            return "over"
        time.sleep(0.02)
    raise MeasurementFailed(f"a coordinator on an older copy neither ended nor went on within {FOUND_TIMEOUT_S:.0f} s")


def _copy(source: Path, target: Path, files: tuple[str, ...] = FILES) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(source / file, target / file)


def _epochs(folder: Path) -> dict[str, Any]:
    """The last epoch of each group that the log issued, with its digest."""
    return {issued["group_id"]: issued for issued in issued_in((folder / FILES[0]).read_bytes())}


def issued_in(log: bytes) -> list[dict[str, Any]]:
    """Every epoch in the batches of a log, in order. Records are text without control characters."""
    found: list[dict[str, Any]] = []
    for record in log.split(b"QREC")[1:]:
        begin = record.find(b"{")
        try:
            batch = json.loads(record[begin:]).get("commands", []) if begin >= 0 else []
        except ValueError:
            continue
        for command in batch:
            found += command.get("issued") or []
    return found


def chains_of_two(servers: Fleet) -> list[str]:
    """Epochs that servers adopted with two meanings, as they refuse and log them."""
    found = []
    for name in servers.names():
        for _, line in log_lines(servers.log(name)):
            fields = line.get("fields", line)
            if str(fields.get("message", "")).startswith("the coordinator sent another configuration"):
                found.append(f"{name} was sent epoch {fields.get('epoch')} of {fields.get('group')} twice")
    return found


def _figures(seen: Seen) -> list[Figure]:
    note = f"{seen.restores} starts on older copies under load, {seen.equal} of which lacked nothing that a server knew"
    return [
        Figure("split_brain_after_restore", len(seen.split), "restores", 0, note=note),
        Figure("restores_of_the_coordinators_log", seen.restores, "restores"),
        Figure("older_log_found_p99_s", quantile(seen.found_s or [0.0], 0.99), "s"),
    ]
