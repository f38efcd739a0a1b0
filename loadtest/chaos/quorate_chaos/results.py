"""Results of many runs: a table for people, lines for programs, and the figure. Pure, except for writing files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quorate_chaos.faults import FAULTS
from quorate_chaos.fleet import DISK, MEMORY, kind_of
from quorate_chaos.trial import FOLDER
from quorate_harness.evidence import source_of
from quorate_harness.figures import Figure, commit, machine
from quorate_local.options import REPOSITORY

FIGURE = "chaos_runs_clean"
RESULTS = REPOSITORY / "loadtest" / "results"
_HEADER = (
    "fault",
    "what happens",
    "runs",
    "clean",
    "operations",
    "entries acked",
    "refused",
    "unknown",
    "longest gap, in memory",
    "longest gap, persistent",
    "whole again after",
)


@dataclass(frozen=True)
class Row:
    """All runs of one fault. Gaps are times without any acknowledgement, of the worst run, in ms."""

    fault: str
    runs: int
    clean: int
    lost: int
    operations: int
    entries: int
    refused: int
    unknown: int
    gap_memory_ms: int
    gap_disk_ms: int
    healed_s: float


def rows(runs: list[dict[str, Any]]) -> list[Row]:
    """One row for each fault that was run, in the table's order. `runs` are contents of run.json."""
    return [_row(name, mine) for name in FAULTS if (mine := [run for run in runs if run["fault"] == name])]


def _row(fault: str, runs: list[dict[str, Any]]) -> Row:
    groups = [group for run in runs for group in run["groups"]]

    def total(key: str) -> int:
        return sum(int(group[key]) for group in groups)

    def worst(name: str) -> int:
        return max((group["longest_gap_ms"] for group in groups if kind_of(group["group"]) == name), default=0)

    return Row(
        fault,
        len(runs),
        sum(run["clean"] for run in runs),
        sum(bool(run["lost"]) for run in runs),
        total("operations"),
        total("entries_acked"),
        total("refused"),
        total("unknown"),
        worst(MEMORY),
        worst(DISK),
        max((run["healed_s"] for run in runs), default=0.0),
    )


def markdown(runs: list[dict[str, Any]], circumstances: dict[str, str], left_out: dict[str, str] | None = None) -> str:
    """The table as a page of its own. `left_out`: faults that this machine cannot do, with the reasons."""
    lines = ["# Real servers under faults", ""]
    lines += [f"{key}: {value}  " for key, value in circumstances.items()]
    lines += [
        "",
        "A run is clean when its history is linearizable, no acked entry is lost, doubled or reordered, no refused",
        "one is present, every replica holds the same log, no server ended by itself, and all groups came back to",
        "full degree. Every run tries an in-memory and a persistent group at once, and three of ten runs 22 more",
        "beside them. Operations are appends (batches), reads, pages of tails and questions for the log's end.",
        "",
        f"| {' | '.join(_HEADER)} |",
        f"|{' --- |' * len(_HEADER)}",
    ]
    for row in rows(runs):
        what = FAULTS[row.fault].summary
        if row.lost:
            what += f" (the in-memory group was lost in {row.lost}, and said so)"
        counts = [row.runs, row.clean, row.operations, row.entries, row.refused, row.unknown]
        texts = [row.fault, what, *(f"{count:,}".replace(",", " ") for count in counts)]
        texts += [f"{row.gap_memory_ms} ms", f"{row.gap_disk_ms} ms", f"{row.healed_s:.1f} s"]
        lines.append(f"| {' | '.join(texts)} |")
    clean = sum(run["clean"] for run in runs)
    lines += ["", f"{clean} of {len(runs)} runs clean."]
    for run in runs:
        if not run["clean"]:
            lines.append(f"Not clean: `{repeat(run['fault'], run['seed'])}`.")
    for name, reason in (left_out or {}).items():
        lines.append(f"Not run, since this machine cannot do it: {name} ({reason}).")
    return "\n".join(lines) + "\n"


def figure(clean: int, runs: int) -> Figure:
    """The figure `chaos_runs_clean`: met if every run is clean."""
    return Figure(FIGURE, clean, "runs", goal=runs, more_is_better=True)


def repeat(fault: str, seed: int) -> str:
    """The command that makes the same choices again. The interleaving on the machine differs."""
    return f"make chaos FAULT={fault} SEED={seed} RUNS=1"


def write(runs: list[dict[str, Any]], command: str, left_out: dict[str, str], publish: bool = False) -> list[Path]:
    """Write table and lines; answers the files. Published ones go to the project's results, named by the day."""
    today = datetime.now(UTC).date().isoformat()
    circumstances = {"Command": f"`{command}`", "Commit": commit(), "Machine": machine(), "Day": today}
    circumstances["Source"] = source(command)
    stem = RESULTS / f"{today}-chaos" if publish else FOLDER / "table"
    table, lines = stem.with_suffix(".md"), stem.with_suffix(".jsonl")
    table.write_text(markdown(runs, circumstances, left_out))
    # A kill leaves the old table or the new one: `--resume` goes on with it.
    beside = lines.with_suffix(".new")
    shape = _short if publish else json.dumps
    beside.write_text("".join(shape(_line(run, circumstances)) + "\n" for run in runs))
    beside.replace(lines)
    return [table, lines]


def _short(line: dict[str, Any]) -> str:
    """The line with its groups' verdicts, and without whatever else is zero or empty in them."""
    groups = [{key: value for key, value in group.items() if value or key == "clean"} for group in line["groups"]]
    return json.dumps({**line, "groups": groups}, separators=(",", ":"))


def source(command: str) -> str:
    """The digest of the sources that a table of this command speaks for."""
    return str(source_of(command))


def resumed(command: str, source: str) -> list[dict[str, Any]]:
    """Runs of the last table, if the same command wrote it with the same sources: also those that were not clean."""
    table = FOLDER / "table.jsonl"
    lines = [json.loads(text) for text in table.read_text().splitlines()] if table.exists() else []
    return [line for line in lines if line["command"] == command and line["source"] == source]


def _line(run: dict[str, Any], circumstances: dict[str, str]) -> dict[str, Any]:
    left_out = ("text", "events")
    groups = [{key: value for key, value in group.items() if key != "picture"} for group in run["groups"]]
    kept = {key: value for key, value in run.items() if key not in left_out}
    # Folders of this machine are left out: they mean nothing elsewhere.
    reasons = [text.replace(f"{REPOSITORY}/", "") for text in run["trouble"]]
    return {
        **kept,
        "trouble": reasons,
        "groups": groups,
        "command": circumstances["Command"].strip("`"),
        "commit": run.get("commit", circumstances["Commit"]),
        "source": run.get("source", circumstances["Source"]),
        "repeat": repeat(run["fault"], run["seed"]),
    }
