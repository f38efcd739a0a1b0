"""Checks that the simulator holds no copy of the group's rules: it runs the crate that servers link.

`RULES` and `CODES` say what counts as a copy, each with its reason. Clients and invariants of the simulator judge
answers and may name codes; its server may not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_checks import checkout
from quorate_checks.cycles import rust_source
from quorate_harness import figures
from quorate_harness.figures import Figure
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

COMMAND = "quorate-checks rule-copies"
COPIES_MAX = 0  # today's number: it only falls, to 0

CORE = "quorate-group"
LINKED_BY = {
    "quorate-sim": "clean seeds speak only for code that the simulator runs",
    "quorate-replica": "the simulator has to run the code that servers run",
}
SIMULATOR = "services/verify/sim/src/"
SERVER = SIMULATOR + "server/"
FLEET = SIMULATOR + "fleet/"  # the state of its server, among others


@dataclass(frozen=True)
class Rule:
    """`path`: the end of a path in the source, such as `Replica::new`; `crate` limits it to names of that crate."""

    path: tuple[str, ...]
    reason: str
    crate: str = ""
    under: tuple[str, ...] = (SIMULATOR,)


def _names(crate: str, names: Iterable[str], reason: str, *under: str) -> list[Rule]:
    return [Rule((name,), reason, crate, under or (SIMULATOR,)) for name in names]


RULES = [
    *_names(
        "quorate_qos",
        ["Admission", "Buckets", "Offer", "Polled", "QueueLimits", "Ready"],
        "the group decides whether an append passes, waits or is refused",
    ),
    *_names("quorate_qos", ["BurstWindow", "Flow", "grant"], "the group decides what passes above its reservation"),
    *_names(
        "quorate_chain",
        ["AppendRequest", "Verdict", "Sessions"],
        "the group recognises retries and judges an append against its session",
    ),
    *_names(
        "quorate_chain",
        ["Command"],
        "the group carries out its replica's commands, or turns them into outputs",
        SERVER,
        FLEET,
    ),
    Rule(("Replica", "new"), "the group makes its replica", under=(SERVER, FLEET)),
]

# Codes that the group or its replica answers with. A server that names one has judged a request itself.
CODES = {
    "attachment": [
        "LayoutChanged",
        "PermissionDenied",
        "SessionMissing",
        "SessionMoved",
        "TokenExpired",
        "TooManyChannels",
        "UnknownChannel",
    ],
    "role of this server": [
        "CutOff",
        "EpochChanged",
        "GroupLost",
        "GroupNotHere",
        "GroupQuarantined",
        "GroupSuspended",
        "NotHead",
        "Syncing",
    ],
    "budget and queue": ["DeadlineExceeded", "Overloaded", "Paused", "ReadOnly", "Throttled"],
    "shape of an append": ["BatchMalformed", "BatchTooLarge", "EntryTooLarge"],
    "order of a session": ["SequenceGap", "SessionExpired", "WindowExceeded"],
    "condition of an append": ["ConditionFailed", "Fenced"],
    "reads and trims": ["OffsetBeyondEnd", "TrimBeyondCommit", "Trimmed", "UnknownRequest"],
}


def code_names() -> set[str]:
    return {code for codes in CODES.values() for code in codes}


@dataclass(frozen=True)
class Copy:
    """`line` 0: the whole file."""

    path: str
    line: int
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}: {self.reason}"


def in_sources(texts: dict[str, str]) -> list[Copy]:
    """Copies of rules in the simulator's sources, by path and text; each line counts once for each name."""
    found = set()
    for path, text in texts.items():
        if path.startswith(SIMULATOR) and path.endswith(".rs"):
            for segments, line in _paths(rust_source.read(text)):
                reason = _reason(segments, path)
                if reason:
                    found.add(Copy(path, line, "::".join(segments), reason))
    return sorted(found, key=lambda copy: (copy.path, copy.line, copy.text))


def _paths(module: rust_source.Module) -> Iterator[tuple[tuple[str, ...], int]]:
    """Every use and path of the file; paths that begin with an imported name begin with its crate here."""
    for use in module.uses:
        yield (*use.path, "*") if use.name == "*" else use.path, use.line
    imported = {use.name: use.path for use in module.uses}
    for path in module.paths:
        yield (*imported.get(path.segments[0], path.segments[:1]), *path.segments[1:]), path.line
    for name, inner in module.inline.items():
        if name != "tests":
            yield from _paths(inner)


def _reason(segments: tuple[str, ...], path: str) -> str | None:
    for rule in RULES:
        if not path.startswith(rule.under):
            continue
        if rule.crate and segments[0] == rule.crate and (segments[1:2] == rule.path or segments[1:] == ("*",)):
            return rule.reason
        if not rule.crate and segments[-len(rule.path) :] == rule.path:
            return rule.reason
    is_code = len(segments) > 1 and segments[-2] == "Code" and (segments[-1] in code_names() or segments[-1] == "*")
    if path.startswith((SERVER, FLEET)) and is_code:
        subject = next((subject for subject, codes in CODES.items() if segments[-1] in codes), "refusals")
        return f"the group judges: {subject}"
    return None


def in_manifests(metadata: dict[str, Any]) -> list[Copy]:
    """One for each package that does not link the core, or links another of the same name (`cargo metadata`)."""
    packages = {package["name"]: package for package in metadata["packages"]}
    core = str(Path(packages[CORE]["manifest_path"]).parent) if CORE in packages else None
    found = []
    for name, reason in LINKED_BY.items():
        dependencies = packages[name]["dependencies"] if name in packages else []
        paths = [one.get("path") for one in dependencies if one["name"] == CORE and one["kind"] is None]
        if core is None or core not in paths:
            found.append(Copy(f"{name}/Cargo.toml", 0, f"no dependency on {CORE}", reason))
    return found


def _metadata(root: Path) -> dict[str, Any]:
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    done = subprocess.run(command, cwd=root / "services", capture_output=True, check=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="keep no figure")
    parser.add_argument("--repository", type=Path, default=REPOSITORY, help="another checkout; keeps no figure")


def main(display: Display, chosen: argparse.Namespace) -> int:
    """0 when there are no more copies than were allowed so far."""
    root = chosen.repository.resolve()
    texts = {name: (root / name).read_text() for name in checkout.files(root, [SIMULATOR])}
    copies = in_manifests(_metadata(root)) + in_sources(texts)
    for copy in copies:
        display.line(str(copy))
    display.line(f"{len(texts)} files of the simulator: {len(copies)} copies of rules, at most {COPIES_MAX}")
    if not chosen.check and root == REPOSITORY:
        figure = Figure("sim_server_rule_copies", len(copies), "copies", 0)
        figures.keep([figure], COMMAND, figures.FOLDER / "rule_copies.jsonl")
    return int(not texts or len(copies) > COPIES_MAX)
