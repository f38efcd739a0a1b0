"""`make profile`: a cost profile of this machine, as the load driver measures it (Filo §6.1), and its error.

Three servers with TLS and with budgets beyond reach, started three times:

1. one shard each. One group alone, over durability and size, tells the roles apart. Two sizes without batches show the
   cost of a batch itself. Mixes of several groups show the cost of sharing a server: they *calibrate* the profile
2. one shard each, started again. Other mixes, drawn by another seed, *judge* the profile, with single entries again.
   The profile contains nothing of this step
3. two shards each, with a group for each shard: for Figure 3 alone

Windows that other processes or the machine's host disturbed are measured again, for a minute in all.

Writes `loadtest/profiles/local.json`, which `make up` uses from then on and a running coordinator reads again. Writes
the cells beside it, which `make figures ONLY=fig3` plots. A profile whose `…_understated_ratio` is beyond its goal
would break commitments: it is written to `local-missed.json`, and the profile in use stays in use. With --accept the
new one is used. Exits 0 only if every error is within its goal.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import httpx2

from quorate_harness.customer import Customer, Refused
from quorate_harness.figures import FOLDER, Figure, commit, keep, table
from quorate_harness.unbudgeted import DURABILITY, create_group, unbudgeted_stack
from quorate_local import ProcessFailed, Stack
from quorate_local.components import binary
from quorate_local.display import Display
from quorate_local.options import REPOSITORY, BadOptions
from quorate_profile import reads
from quorate_profile.measuring import Measuring

COMMAND = "make profile"
PROFILES = REPOSITORY / "loadtest" / "profiles"
ERROR_GOAL = 0.15
MIXED_GROUPS = 3  # per durability
CALIBRATION_SEED, VALIDATION_SEED = 1, 2
PLOTTED_REPEATS = 1  # for the cells that only Figure 3 needs
UNBATCHED_SIZES = "64,1024"
TIMEOUT_S = 1_800.0


class DriverFailed(Exception):
    """The load driver did not finish; what it said is on the terminal."""


FAILURES = (BadOptions, ProcessFailed, Refused, DriverFailed, TimeoutError, httpx2.HTTPError, OSError)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _arguments(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped then too
    display = Display()
    try:
        return _measure(chosen, display)
    except FAILURES as error:
        display.line(f"\nThe measurement could not be finished.\n{error}")
        return 1
    except KeyboardInterrupt:
        display.line("\nInterrupted; the servers are stopped.")
        return 130


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quorate-profile", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="of each cell; medians count (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each cell (default %(default)s)")
    parser.add_argument("--mixes", type=int, default=12, help="and as many to judge by (default %(default)s)")
    parser.add_argument("--sizes", help="bytes, with commas (default: 64 to 32768, each twice the one before)")
    parser.add_argument("--out", type=Path, default=PROFILES, help="folder for local.json (default %(default)s)")
    parser.add_argument("--accept", action="store_true", help="use the profile even where commitments would be broken")
    parser.add_argument("--plaintext", action="store_true", help="servers without TLS")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "profile", help="state and logs")
    chosen = parser.parse_args(arguments)
    if not (1 <= chosen.repeats <= 99 and 0.1 <= chosen.seconds <= 600 and 1 <= chosen.mixes <= 1_000):
        parser.error("--repeats must be 1 to 99, --seconds 0.1 to 600, --mixes 1 to 1000")
    return chosen


@dataclass
class Found:
    """Files that the driver wrote."""

    folder: Path

    @property
    def cells(self) -> list[Path]:
        return [self.folder / f"cells-{shards}.json" for shards in (1, 2)]

    @property
    def unbatched(self) -> Path:
        return self.folder / "unbatched.json"

    @property
    def unbatched_again(self) -> Path:
        return self.folder / "unbatched-again.json"

    @property
    def reads(self) -> Path:
        return self.folder / "reads.json"

    @property
    def reads_again(self) -> Path:
        return self.folder / "reads-again.json"

    @property
    def calibration(self) -> Path:
        return self.folder / "calibration.json"

    @property
    def validation(self) -> Path:
        return self.folder / "validation.json"

    @property
    def profile(self) -> Path:
        return self.folder / "profile.json"

    @property
    def error(self) -> Path:
        return self.folder / "error.json"


def _measure(chosen: argparse.Namespace, display: Display) -> int:
    found, begun = Found(chosen.folder), time.monotonic()

    def tell(what: str) -> None:
        display.line(f"  {time.monotonic() - begun:4.0f} s  {what}")

    measuring = Measuring(chosen.seconds, chosen.mixes, tell)
    cells, mixes = measuring.cells, measuring.mixes

    def unbatched(fleet: Running, out: Path) -> None:
        cells(fleet, 1, 1, out, chosen.sizes or UNBATCHED_SIZES, "--batch-entries-max", "1")

    with ExitStack() as running:
        fleet = _start(running, chosen, "calibration", 1, display)
        tell("one group alone, over durability and size")
        cells(fleet, 1, chosen.repeats, found.cells[0], chosen.sizes)
        tell("the same without batches")
        unbatched(fleet, found.unbatched)
        tell("reads, from memory and from the disk")
        fleet.read(chosen, found.reads)
        tell("mixes to calibrate on: what sharing a server costs")
        mixes(fleet, CALIBRATION_SEED, found.calibration)
        _fit(fleet, found)
    with ExitStack() as running:
        fleet = _start(running, chosen, "validation", 1, display)
        tell("other mixes, to judge by")
        mixes(fleet, VALIDATION_SEED, found.validation)
        tell("and without batches")
        unbatched(fleet, found.unbatched_again)
        tell("and reads")
        fleet.read(chosen, found.reads_again)
        judged_by = ["--mixes", str(found.validation), "--unbatched", str(found.unbatched_again)]
        judged_by += ["--reads", str(found.reads_again)]
        judged = ["--profile", str(found.profile), *judged_by, "--json", str(found.error)]
        _run([fleet.binary, "profile-error", *judged, "--figures-dir", str(chosen.folder)])
    with ExitStack() as running:
        fleet = _start(running, chosen, "shards", 2, display)
        tell("two shards a server, for Figure 3")
        cells(fleet, 2, PLOTTED_REPEATS, found.cells[1], chosen.sizes)
    display.line(f"{measuring.again} windows were measured again; {measuring.disturbed} that count were disturbed.")
    return _publish(chosen, found, display)


@dataclass(frozen=True)
class Running:
    stack: Stack
    shards: int
    groups: dict[str, list[Path]]
    is_plaintext: bool

    @property
    def binary(self) -> str:
        return binary(self.stack.options, "quorate-load")

    def drive(self, what: str, groups: dict[str, list[Path]], more: list[str]) -> None:
        stack, flags = self.stack, {"mem": "--in-memory", "sync": "--persistent"}
        handles = [text for mode, paths in groups.items() for path in paths for text in (flags[mode], str(path))]
        processes = stack.processes()
        pids = {name: processes[name].identity.pid for name in stack.options.server_names()}
        named = [text for name, pid in pids.items() for text in ("--server", f"{stack.addresses[name]}={pid}")]
        plaintext = ["--plaintext"] if self.is_plaintext else []
        _run([self.binary, *plaintext, what, *handles, *named, *more])

    def read(self, chosen: argparse.Namespace, out: Path) -> None:
        driver = [self.binary, *(["--plaintext"] if self.is_plaintext else [])]
        reads.measure(self.stack, driver, chosen.seconds, chosen.folder, out, _run)


def _start(running: ExitStack, chosen: argparse.Namespace, name: str, shards: int, display: Display) -> Running:
    folder: Path = chosen.folder / name
    options = unbudgeted_stack(folder, Display(quiet=True), chosen.plaintext).options
    stack = Stack(replace(options, shards_per_server=shards), Display(quiet=True))
    stack.wipe()
    with display.step(f"starting three servers of {shards} shard{'s' if shards > 1 else ''}"):
        running.callback(_remove, stack, folder)
        running.enter_context(stack)
        groups: dict[str, list[Path]] = {mode: [] for mode in DURABILITY}
        for number in range(shards if shards > 1 else MIXED_GROUPS):
            for mode in DURABILITY:
                # A customer each: what one organization may reserve in all is less than two such groups.
                with Customer(stack.api_url, "profile") as customer:
                    groups[mode].append(create_group(customer, f"{mode}-{number}", mode, folder))
    return Running(stack, shards, groups, chosen.plaintext)


def _remove(stack: Stack, folder: Path) -> None:
    for data in ("servers", "postgres", "redis"):
        shutil.rmtree(stack.options.state / data, ignore_errors=True)
    for handle in folder.glob("*.json"):
        handle.unlink()


def _fit(fleet: Running, found: Found) -> None:
    now = datetime.now(UTC)
    source = f"`{COMMAND}` at commit {commit()}, {now:%Y-%m-%d}"
    measured = ["--cells", str(found.cells[0]), "--unbatched", str(found.unbatched), "--mixes", str(found.calibration)]
    measured += ["--reads", str(found.reads)]
    version = f"measured-{now:%Y-%m-%d-%H%M}"
    about = ["--version", version, "--source", source, "--out", str(found.profile)]
    _run([fleet.binary, "fit", *measured, *about])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise DriverFailed(f"{Path(command[0]).name} {command[1]} ended with {done.returncode}")


def _publish(chosen: argparse.Namespace, found: Found, display: Display) -> int:
    measured = [cell for path in found.cells for cell in json.loads(path.read_text())]
    unbatched, calibration, validation = (
        json.loads(path.read_text()) for path in (found.unbatched, found.calibration, found.validation)
    )
    profile, error = json.loads(found.profile.read_text()), json.loads(found.error.read_text())
    others = others_of_worst(error, validation)
    figures = judged(error, len(calibration), float(profile["safety_factor"]), others)
    figures.append(Figure("cost_unbatched_ratio", dearer(unbatched, measured), "ratio", note=UNBATCHED_NOTE))
    keep(figures, COMMAND, FOLDER / "profile.jsonl")
    about = {key: profile[key] for key in ("version", "source", "machine", "servers_version", "safety_factor")}
    error["understated_others_cores"] = others
    kept = {**about, "cells": measured, "unbatched": unbatched, "calibration": calibration, "error": error}
    kept["reads"] = json.loads(found.reads.read_text())
    broken = [figure for figure in figures if figure.name.endswith("_understated_ratio") and figure.met is False]
    name = "local" if chosen.accept or not broken else MISSED
    written = write(chosen.out, name, found.profile, kept)
    display.line()
    for line in table(figures):
        display.line(line)
    display.line(f"The server most above what the profile says was so while others used {others:.2f} cores.")
    if broken:
        display.line(verdict(broken, written, is_used=name == "local"))
    cells = f"build/venv/bin/quorate-figures --only fig3 --cells {written.with_name(f'{name}-cells.json')}"
    display.line(f"written to {written}: `{'make figures ONLY=fig3' if name == 'local' else cells}` plots it")
    return 1 if any(figure.met is False for figure in figures) else 0


MISSED = "local-missed"


def write(folder: Path, name: str, profile: Path, kept: dict[str, Any]) -> Path:
    """The profile and its cells, under that name; none that was missed stays beside one that is used."""
    folder.mkdir(parents=True, exist_ok=True)
    if name != MISSED:
        for stale in (f"{MISSED}.json", f"{MISSED}-cells.json"):
            (folder / stale).unlink(missing_ok=True)
    (folder / f"{name}-cells.json").write_text(json.dumps(kept) + "\n")
    # Whole or not at all: a coordinator may be watching the file.
    shutil.copyfile(profile, folder / f"{name}.json.new")
    (folder / f"{name}.json.new").replace(folder / f"{name}.json")
    return folder / f"{name}.json"


def verdict(broken: list[Figure], written: Path, is_used: bool) -> str:
    """One line: what is beyond its goal, and which profile is used now."""
    worst = max(broken, key=lambda figure: figure.value / float(figure.goal or 1))
    said = f"{worst.name} is {worst.value:.2f}, and its goal {worst.goal:g}: this profile would break commitments. "
    if is_used:
        return said + "It is used all the same, as --accept says."
    used = written.with_name("local.json")
    kept = f"{used} is as it was" if used.exists() else "There is no other one, so `make up` goes on with the estimate"
    return said + f"It is not used. {kept}; measure again when the machine is quiet, or `make profile ACCEPT=1`."


def others_of_worst(error: dict[str, Any], validation: list[dict[str, Any]]) -> float:
    """Cores that others used in the mix with the server that used most beyond what was predicted."""

    def understated(number: int) -> float:
        return max(float(one["measured"] / one["predicted"]) for one in error["mixes"][number]["servers"])

    return float(validation[max(range(len(validation)), key=understated)]["others_cores"])


UNBATCHED_NOTE = (
    "CPU of an append that comes alone, over that in batches, at the head: what a batch costs itself is charged"
)


def judged(error: dict[str, Any], calibrated: int, safety_factor: float, others: float) -> list[Figure]:
    """The errors, of mixes that the profile has not seen. `others`: cores that others used beside the worst server."""
    about = f"{len(error['mixes'])} mixes of another seed, on servers started anew, than the profile's {calibrated}"
    worst = f"worst server {error['worst']:.3f}; {about}"
    promise = f"worst server: cores used over cores predicted, while others used {others:.2f} cores; "
    promise += f"beyond 1/{safety_factor:g} a commitment is broken"
    alone = "worst role: CPU of appends that come alone over what is charged for them, on servers started anew"
    of_reads = "worst size: CPU of reads over what is charged for them, on servers started anew"
    disk = "worst server: bytes written over what is charged, 8 KB for each operation"
    return [
        Figure("cost_model_error", error["median"], "ratio", ERROR_GOAL, note=worst),
        Figure("cost_model_understated_ratio", error["understated"], "ratio", 1 / safety_factor, note=promise),
        Figure(
            "cost_model_error_network", error["network_median"], "ratio", ERROR_GOAL, note="bytes between processes"
        ),
        Figure(
            "cost_model_storage_understated_ratio", error["storage_understated"], "ratio", 1 / safety_factor, note=disk
        ),
        Figure(
            "cost_unbatched_understated_ratio", error["unbatched_understated"], "ratio", 1 / safety_factor, note=alone
        ),
        Figure("cost_reads_understated_ratio", error["reads_understated"], "ratio", 1 / safety_factor, note=of_reads),
    ]


def dearer(unbatched: list[dict[str, Any]], batched: list[dict[str, Any]]) -> float:
    """Medians over durability and size."""

    def head_ns(cells: list[dict[str, Any]], like: dict[str, Any]) -> float:
        same = [cell for cell in cells if all(cell[key] == like[key] for key in ("durability", "size_bytes", "shards"))]
        return float(median(role["cpu_ns"] for cell in same for role in cell["roles"] if role["role"] == "head"))

    like = [one for one in unbatched if any(cell["size_bytes"] == one["size_bytes"] for cell in batched)]
    return float(median(head_ns(unbatched, one) / head_ns(batched, one) for one in like))


if __name__ == "__main__":
    sys.exit(main())
