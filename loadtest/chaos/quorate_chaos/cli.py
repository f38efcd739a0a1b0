"""`make chaos`: runs every fault, or the chosen ones, and reports the results.

Exit code 0: every run clean. 1: some were not. 2: chaos could not run here.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from quorate_chaos import gray, machine, results
from quorate_chaos.faults import FAULTS
from quorate_chaos.load import CHECKER
from quorate_chaos.run import LOAD_S
from quorate_chaos.trial import FOLDER
from quorate_harness import figures, throttle
from quorate_local.options import BINARIES, REPOSITORY

RUN_TIMEOUT_S = 180.0
END_GRACE_S = 10.0
AT_ONCE_MAX = 16  # each has up to a dozen processes
LINE_WIDTH = 110  # more than the line that it replaces on a terminal
# In `make test`: a failover, a disk that is gone, a link that only one side can use.
SHORT = (("kill_head", 1), ("wiped_disk", 1), ("one_way", 1))
SHORT_LOAD_S = 9.0
_BINARIES = [*(BINARIES / name for name in ("quorate-coordinator", "quorate-replica", "quorate-load")), CHECKER]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    plan = _plan(options)
    try:
        machine.require()
        _require_binaries()
        left_out = _left_out(plan, asked_for=bool(options.fault))
    except machine.Unfit as unfit:
        print(f"Chaos cannot run here.\n{unfit}", file=sys.stderr)
        return 2
    plan = [(fault, seed) for fault, seed in plan if fault not in left_out]
    print(f"{len(plan)} runs; each tries an in-memory and a persistent group under load, some of them 24 groups")
    for fault, reason in left_out.items():
        print(f"left out: {fault}, since {reason}")
    source = results.source(_command(options))  # before anything runs: it may change meanwhile
    table = results.resumed(_command(options), source) if options.resume else []
    runs = [run for run in table if (run["fault"], run["seed"]) in plan]
    if runs:
        print(f"{len(runs)} of them were judged before, with the same sources")
    throttle.remove_abandoned()
    begun, judged = time.monotonic(), {(run["fault"], run["seed"]) for run in runs}
    left = [one for one in plan if one not in judged]
    for found in _tried(left, options, lambda begins: _show_progress(begins, len(plan), runs, begun)):
        run = found | {"source": source}
        runs.append(run)
        print(f"{len(runs):>4}  {line(run)}".ljust(LINE_WIDTH if sys.stdout.isatty() else 0), flush=True)
        if not run["clean"]:
            print(explanation(run), flush=True)
        elif not options.keep:
            shutil.rmtree(folder_of(run["fault"], run["seed"]), ignore_errors=True)
        if not _is_part(options):
            results.write(runs, _command(options), left_out)  # an interrupted table is kept
    _conclude(runs, left_out, options, time.monotonic() - begun)
    return 0 if all(run["clean"] for run in runs) else 1


def _tried(
    plan: list[tuple[str, int]], options: argparse.Namespace, begins: Callable[[tuple[str, int]], None]
) -> Iterator[dict[str, Any]]:
    """Every run of the plan as it ends, so many of them at once as the options say."""

    def attempt(fault: str, seed: int) -> dict[str, Any]:
        begins((fault, seed))
        degree = gray.DEGREE if options.gray else None
        return one(fault, seed, SHORT_LOAD_S if options.short else LOAD_S, options.verbose, degree)

    # A run ends with the thread that started it: those of the pool live until it is empty.
    with ThreadPoolExecutor(options.at_once) as pool:
        attempts = [pool.submit(attempt, fault, seed) for fault, seed in plan]
        try:
            for ended in as_completed(attempts):
                yield ended.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _left_out(plan: list[tuple[str, int]], asked_for: bool) -> dict[str, str]:
    """Faults that this machine cannot do, with the reasons. Raises `Unfit` if they were asked for."""
    found = {name: reason for name in dict(plan) if (reason := FAULTS[name].missing()) is not None}
    if found and asked_for:
        raise machine.Unfit("\n".join(f"{name}: {reason}" for name, reason in found.items()))
    return found


def _show_progress(present: tuple[str, int], planned: int, runs: list[dict[str, Any]], begun: float) -> None:
    """Print the present run and the estimated time left. On a terminal the result replaces it."""
    fault, seed = present
    measured = sum("text" in run for run in runs)  # not those of an interrupted table
    each_s = (time.monotonic() - begun) / measured if measured else 0.0
    left = f", about {each_s * (planned - len(runs)) / 60:.0f} min to go" if measured else ""
    unclean = sum(not run["clean"] for run in runs)
    text = f"{len(runs) + 1:>4}  of {planned}: {fault} seed {seed} … ({unclean} not clean so far{left})"
    print(f"{text}\r" if sys.stdout.isatty() else text, end="" if sys.stdout.isatty() else "\n", flush=True)


def one(fault: str, seed: int, load_s: float, verbose: bool = False, degree: int | None = None) -> dict[str, Any]:
    """One run, in namespaces of its own and bounded in time; the content of its run.json."""
    folder = folder_of(fault, seed)
    shutil.rmtree(folder, ignore_errors=True)
    words = [fault, str(seed), str(folder), str(load_s), *([str(degree)] if degree else [])]
    command = machine.inside([sys.executable, "-m", "quorate_chaos.run", *words])
    begun = time.monotonic()
    child = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        stdout=None if verbose else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output, _ = child.communicate(timeout=RUN_TIMEOUT_S)
        reason = f"it ended with code {child.returncode} before it could judge\n{(output or '')[-2000:]}"
    except subprocess.TimeoutExpired:
        reason = f"it took longer than {RUN_TIMEOUT_S:.0f} s"
    finally:
        _end(child)
        throttle.remove(folder)
    try:
        found = json.loads((folder / "run.json").read_text())
        assert isinstance(found, dict), "run.json holds an object"
    except (FileNotFoundError, json.JSONDecodeError):
        seconds = round(time.monotonic() - begun, 1)
        found = {"fault": fault, "seed": seed, "degree": 0, "clean": False, "seconds": seconds, "healed_s": 0.0}
        found |= {"lost": [], "trouble": [reason], "events": [], "groups": [], "text": ""}
    return found


def _end(child: subprocess.Popen[str]) -> None:
    """End `unshare`. That ends the first process of its namespaces, and with it everything in them."""
    if child.poll() is None:
        child.send_signal(signal.SIGKILL)
        child.wait(END_GRACE_S)


def folder_of(fault: str, seed: int) -> Path:
    return FOLDER / f"{fault}-{seed}"


def line(run: dict[str, Any]) -> str:
    operations = sum(group["operations"] for group in run["groups"])
    unknown = sum(group["unknown"] for group in run["groups"])
    gap_ms = max((group["longest_gap_ms"] for group in run["groups"]), default=0)
    verdict = "clean" if run["clean"] else "NOT CLEAN"
    lost = f", lost: {', '.join(run['lost'])}" if run["lost"] else ""
    return (
        f"{run['fault']:<22} seed {run['seed']:<6} degree {run['degree']}  {verdict:<9}  {operations:>6} operations, "
        f"{unknown:>3} unknown, gap {gap_ms:>5} ms, {run['seconds']:5.1f} s{lost}"
    )


def explanation(run: dict[str, Any]) -> str:
    lines = [*run["events"], *run["trouble"], *run["text"].splitlines()]
    lines += [f"again:    {results.repeat(run['fault'], run['seed'])}"]
    lines += [f"evidence: {folder_of(run['fault'], run['seed']).relative_to(REPOSITORY)} (history, logs, disks)"]
    return "\n".join(f"        {text}" for text in lines)


def _conclude(
    runs: list[dict[str, Any]], left_out: dict[str, str], options: argparse.Namespace, seconds: float
) -> None:
    clean = sum(run["clean"] for run in runs)
    print(f"{len(runs)} runs: {clean} clean, {len(runs) - clean} not; {seconds:.0f} s")
    command = _command(options)
    if options.gray:
        kept = gray.found(runs)
        print("\n".join(figures.table(kept)))
        figures.keep(kept, command, figures.FOLDER / "chaos.jsonl")
    if _is_part(options):
        return  # a part of the table gives no figure of the whole
    figures.keep([results.figure(clean, len(runs))], command, figures.FOLDER / "chaos.jsonl")
    written = results.write(runs, command, left_out)
    if options.publish:
        written += results.write(runs, command, left_out, publish=True)
    for path in written:
        print(f"wrote {path.relative_to(REPOSITORY)}")


def _command(options: argparse.Namespace) -> str:
    more = f" AT_ONCE={options.at_once}" if options.at_once > 1 else ""
    more += " GRAY=1" if options.gray else ""
    more += "".join(f" FAULT={fault}" for fault in options.fault or ())
    return f"make chaos RUNS={options.runs} SEED={options.seed}{more}"


def _is_part(options: argparse.Namespace) -> bool:
    return bool(options.short or options.fault or options.gray)


def _plan(options: argparse.Namespace) -> list[tuple[str, int]]:
    if options.short:
        return list(SHORT)
    names = options.fault or list(gray.FAULTS if options.gray else FAULTS)
    # Every fault once, then again, so that an interrupted table has every fault.
    return [(name, options.seed + number) for number in range(options.runs) for name in names]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    known = "\n".join(f"  {fault.name:<22}{fault.summary}" for fault in FAULTS.values())
    parser = argparse.ArgumentParser(
        prog="quorate-chaos",
        description="Real servers under faults and load, their histories checked for linearizability.",
        epilog=f"faults:\n{known}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=1, help="runs of each fault (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first run; each next one is one more")
    parser.add_argument(
        "--fault", action="append", choices=list(FAULTS), metavar="NAME", help="only this fault; repeatable"
    )
    parser.add_argument("--at-once", type=int, default=1, help="runs beside one another, each takes about a core")
    parser.add_argument("--short", action="store_true", help=f"{len(SHORT)} quick runs, as in `make test`")
    parser.add_argument(
        "--gray",
        action="store_true",
        help="failures that are not clean, and how long groups of three stood still",
    )
    parser.add_argument("--keep", action="store_true", help="keep the evidence of clean runs too")
    parser.add_argument("--publish", action="store_true", help="write the whole table to loadtest/results too")
    parser.add_argument("--resume", action="store_true", help="go on behind an interrupted run of the same sources")
    parser.add_argument("--verbose", action="store_true", help="print the steps of each run")
    options = parser.parse_args(arguments)
    if options.resume and _is_part(options):
        parser.error("--resume goes on with a whole table: leave out --fault, --gray and --short")
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    if not 1 <= options.at_once <= AT_ONCE_MAX:
        parser.error(f"--at-once must be from 1 to {AT_ONCE_MAX}")
    return options


def _require_binaries() -> None:
    missing = [path.name for path in _BINARIES if not path.exists()]
    if missing:
        raise machine.Unfit(f"Not built: {', '.join(missing)}. `make build` builds {shlex.join(missing)}.")


if __name__ == "__main__":
    sys.exit(main())
