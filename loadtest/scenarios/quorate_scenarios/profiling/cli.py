"""`make profile`: a cost profile of this machine, as the load driver measures it (Filo §6.1), and its error.

Three servers with TLS and with budgets beyond reach, once with one shard each, from which roles are told apart, and
once with two, with a group for each shard. Writes `loadtest/profiles/local.json`, which `make up` uses from then on
and a running coordinator reads again, and the cells beside it, which `make figures ONLY=fig3` plots. Exits 0 only if
the error is within its goal.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from quorate_local import ProcessFailed, Stack
from quorate_local.components import binary
from quorate_local.display import Display
from quorate_local.figures import FOLDER, Figure, commit, keep, table
from quorate_local.options import REPOSITORY, BadOptions
from quorate_scenarios.bench.unbudgeted import DURABILITY, create_group, unbudgeted_stack
from quorate_scenarios.customer import Customer, Refused

COMMAND = "make profile"
PROFILES = REPOSITORY / "loadtest" / "profiles"
ERROR_GOAL = 0.15
OTHERS_CORES_MAX = 0.1
SHARDS = (1, 2)
MIXED_GROUPS = 2  # of each durability
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
    parser.add_argument("--mixes", type=int, default=8, help="for the error (default %(default)s)")
    parser.add_argument("--sizes", help="bytes, with commas (default: 64 to 32768, each twice the one before)")
    parser.add_argument("--out", type=Path, default=PROFILES, help="folder for local.json (default %(default)s)")
    parser.add_argument("--plaintext", action="store_true", help="servers without TLS")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "profile", help="state and logs")
    chosen = parser.parse_args(arguments)
    if not (1 <= chosen.repeats <= 99 and 0.1 <= chosen.seconds <= 600 and 1 <= chosen.mixes <= 1_000):
        parser.error("--repeats must be 1 to 99, --seconds 0.1 to 600, --mixes 1 to 1000")
    return chosen


def _measure(chosen: argparse.Namespace, display: Display) -> int:
    cells: list[Path] = []
    new = chosen.folder / "profile.json"
    error: dict[str, Any] = {}
    for shards in SHARDS:
        with ExitStack() as running:
            stack, groups = _start(running, chosen, shards, display)
            cells.append(chosen.folder / f"cells-{shards}.json")
            single = {mode: handles[:shards] for mode, handles in groups.items()}
            pace = ["--seconds", str(chosen.seconds), "--repeats", str(chosen.repeats), "--shards", str(shards)]
            sizes = ["--sizes", chosen.sizes] if chosen.sizes else []
            display.line(f"  measuring, {shards} shard{'s' if shards > 1 else ''} a server")
            _drive(stack, chosen, "profile", single, [*pace, *sizes, "--json", str(cells[-1])])
            if shards == 1:
                _fit(stack, cells, new)
                display.line("  comparing predictions with what mixed workloads use")
                told = chosen.folder / "error.json"
                more = ["--profile", str(new), "--mixes", str(chosen.mixes), "--seconds", str(chosen.seconds)]
                kept = ["--figures-dir", str(chosen.folder), "--json", str(told)]
                _drive(stack, chosen, "profile-error", groups, [*more, *kept])
                error = json.loads(told.read_text())
    return _publish(chosen, new, cells, error, display)


def _start(
    running: ExitStack, chosen: argparse.Namespace, shards: int, display: Display
) -> tuple[Stack, dict[str, list[Path]]]:
    folder: Path = chosen.folder / f"shards-{shards}"
    options = unbudgeted_stack(folder, Display(quiet=True), chosen.plaintext).options
    stack = Stack(replace(options, shards_per_server=shards), Display(quiet=True))
    stack.wipe()
    with display.step(f"starting three servers of {shards} shard{'s' if shards > 1 else ''}"):
        running.callback(_remove, stack, folder)
        running.enter_context(stack)
        count = max(shards, MIXED_GROUPS if shards == 1 else 1)
        groups: dict[str, list[Path]] = {mode: [] for mode in DURABILITY}
        for number in range(count):
            for mode in DURABILITY:
                # A customer each: what one organization may reserve in all is less than two such groups.
                with Customer(stack.api_url, "profile") as customer:
                    groups[mode].append(create_group(customer, f"{mode}-{number}", mode, folder))
    return stack, groups


def _remove(stack: Stack, folder: Path) -> None:
    for data in ("servers", "postgres", "redis"):
        shutil.rmtree(stack.options.state / data, ignore_errors=True)
    for handle in folder.glob("*.json"):
        handle.unlink()


def _drive(stack: Stack, chosen: argparse.Namespace, what: str, groups: dict[str, list[Path]], more: list[str]) -> None:
    flags = {"mem": "--in-memory", "sync": "--persistent"}
    handles = [text for mode, paths in groups.items() for path in paths for text in (flags[mode], str(path))]
    processes = stack.processes()
    pids = {name: processes[name].identity.pid for name in stack.options.server_names()}
    named = [text for name, pid in pids.items() for text in ("--server", f"{stack.addresses[name]}={pid}")]
    plaintext = ["--plaintext"] if chosen.plaintext else []
    _run([binary(stack.options, "quorate-load"), *plaintext, what, *handles, *named, *more])


def _fit(stack: Stack, cells: list[Path], out: Path) -> None:
    now = datetime.now(UTC)
    source = f"`{COMMAND}` at commit {commit()}, {now:%Y-%m-%d}"
    named = [text for path in cells for text in ("--cells", str(path))]
    version = f"measured-{now:%Y-%m-%d-%H%M}"
    about = ["--version", version, "--source", source, "--out", str(out)]
    _run([binary(stack.options, "quorate-load"), "fit", *named, *about])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise DriverFailed(f"{Path(command[0]).name} {command[1]} ended with {done.returncode}")


def _publish(chosen: argparse.Namespace, new: Path, cells: list[Path], error: dict[str, Any], display: Display) -> int:
    chosen.out.mkdir(parents=True, exist_ok=True)
    measured = [cell for path in cells for cell in json.loads(path.read_text())]
    profile = json.loads(new.read_text())
    about = {key: profile[key] for key in ("version", "source", "machine", "servers_version")}
    (chosen.out / "local-cells.json").write_text(json.dumps({**about, "cells": measured, "error": error}) + "\n")
    # Whole or not at all: a coordinator may be watching the file.
    shutil.copyfile(new, chosen.out / "local.json.new")
    (chosen.out / "local.json.new").replace(chosen.out / "local.json")
    note = f"{len(error['mixes'])} mixes, worst server {error['worst']:.3f}"
    figure = Figure("cost_model_error", error["median"], "ratio", ERROR_GOAL, note=note)
    keep([figure], COMMAND, FOLDER / "profile.jsonl")
    display.line()
    for line in table([figure]):
        display.line(line)
    others = max(cell["others_cores"] for cell in measured)
    if others > OTHERS_CORES_MAX:
        display.line(f"Other processes used up to {others:.1f} cores meanwhile: measure again when it is quiet.")
    display.line(f"written to {chosen.out / 'local.json'}: `make figures ONLY=fig3` plots it")
    return 0 if figure.met else 1


if __name__ == "__main__":
    sys.exit(main())
