"""`make bench`: every cell that the goals name, on three servers of this machine, in about five minutes.

Its parts are cells, groups, isolation and spinning, each on servers of its own. Cells run beside a second fleet that
has TLS; only one fleet is loaded at a time. Measurements that are compared follow one another. Exits 0 only if every
goal was met.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import SubprocessError

import httpx2

from quorate_bench.beside import BESIDE_REPEATS, Beside, Side
from quorate_bench.driver import DriverFailed, Measured, Pace, Target
from quorate_bench.verdict import Found, Pair, figures
from quorate_harness.cells import (
    CELL_64B,
    CELLS,
    COMPARED,
    GROUPS,
    GROUPS_RATES_PER_S,
    ISOLATION_RATES_PER_S,
    MODES,
    SPIN_US,
    Mode,
)
from quorate_harness.customer import Customer, Refused
from quorate_harness.figures import FOLDER, Figure, keep, table
from quorate_harness.quiet import OTHERS_SHARE_MAX, Quiet
from quorate_harness.unbudgeted import create_group, unbudgeted_stack
from quorate_local import ProcessFailed, Stack
from quorate_local.components import binary
from quorate_local.display import Display
from quorate_local.options import REPOSITORY, BadOptions, StackOptions

PARTS = ("cells", "groups", "isolation", "spinning")
REPEATS = 3
PACE = Pace(warmup_s=0.3, window_s=1.0)
# Until memory no longer grows, at what a closed loop takes in: a first touch of a page is dear.
FILLING: dict[Mode, Pace] = {"mem": Pace(warmup_s=4.0, window_s=0.5), "sync": Pace(warmup_s=6.0, window_s=0.5)}
FILLING_ONE = Pace(warmup_s=0.5, window_s=0.5)  # the group beside them, a hundredth of what they retain
MEASURING_ISOLATION = {"QUORATE_MEASURE_ISOLATION": "true"}
# Windows of a whole second. Each second, servers report usage of groups, and the worker stores it; meanwhile an append
# costs up to a fifth less. Each of four windows of a quarter would see another part of the second.
ISOLATION_PAIRS = 2  # per repetition: half of them begin with isolation, so that drift falls on both
ISOLATION_PACE = Pace(warmup_s=0.5, window_s=1.0)
GROUPS_PAIRS = 2  # per open loop and repetition: one begins with the one group, one with the many
GROUPS_PACE = Pace(warmup_s=0.3, window_s=1.0)
GROUPS_PER_CUSTOMER = 25  # one project may have 50; customers buy side by side
# Disturbed windows are measured again. A machine that is never quiet costs five seconds, and the end of the run says
# so.
ATTEMPTS_MAX, WAIT_S, BUDGET_S = 3, 2.0, 5.0
FAILURES = (BadOptions, ProcessFailed, Refused, DriverFailed, TimeoutError, httpx2.HTTPError, OSError, SubprocessError)


OWN_BINARIES = StackOptions().bin_dir


@dataclass(frozen=True)
class Fleet:
    """Running servers: how to load them, and the handles of one group of each durability."""

    target: Target
    handles: dict[Mode, Path]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-bench", description=__doc__)
    parser.add_argument(
        "--repeats",
        type=int,
        help=f"of each cell; medians count (default {REPEATS}, or {BESIDE_REPEATS} with --beside)",
    )
    parser.add_argument("--only", default="", metavar="PARTS", help=f"of {', '.join(PARTS)}, with commas (all)")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="compare with servers of these binaries, in turn")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "bench", help="state and logs")
    chosen = parser.parse_args(arguments)
    usual = BESIDE_REPEATS if chosen.beside else REPEATS
    repeats = usual if chosen.repeats is None else chosen.repeats
    if not 1 <= repeats <= 100:
        parser.error("--repeats must be 1 to 100")
    parts = chosen.only.replace(",", " ").split() or PARTS
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"--only {unknown[0]}: no such part; there are {', '.join(PARTS)}")
    if chosen.beside and chosen.only:
        parser.error("--beside compares all cells: leave --only out")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped then too
    display, begun = Display(), time.monotonic()
    try:
        bench = Bench(chosen.folder, repeats, display, Quiet(ATTEMPTS_MAX, WAIT_S, BUDGET_S))
        if chosen.beside:
            return _compare(bench, chosen.beside.resolve(), begun)
        found = measure(bench, parts)
    except FAILURES as error:
        display.line(f"\nThe measurement could not be finished.\n{error}")
        return 1
    except KeyboardInterrupt:
        display.line("\nInterrupted; the servers are stopped.")
        return 130
    only = f" ONLY={','.join(parts)}" if chosen.only else ""
    repeated = f" REPEATS={repeats}" if repeats != REPEATS else ""
    return _report(found, f"make bench{only}{repeated}", display, time.monotonic() - begun)


def _compare(bench: Bench, bin_dir: Path, begun: float) -> int:
    with ExitStack() as running:
        _, ours = bench.start(running, "ours")
        _, theirs = bench.start(running, "theirs", bin_dir=bin_dir)
        beside = Beside(Side(ours.target, ours.handles), Side(theirs.target, theirs.handles))
        bench.repetitions("each cell in turn", beside.measure)
    return _finish(beside.figures(), f"make bench BESIDE={bin_dir.name}", bench.display, time.monotonic() - begun)


def measure(bench: Bench, parts: Sequence[str]) -> Found:
    found = Found()
    if "cells" in parts:
        with ExitStack() as running:
            _cells(bench, running, found)
    if "groups" in parts or "isolation" in parts:
        # Servers of their own: what a hundred tenants retain, and the control plane does for them, is no part of one's.
        with ExitStack() as running:
            fleet, groups = _with_groups(bench, running)
            if "groups" in parts:
                _groups(bench, fleet, groups, found)
            if "isolation" in parts:
                _isolation(bench, fleet, groups, found)
    if "spinning" in parts:
        with ExitStack() as running:
            _spinning(bench, running, found)
    return found


@dataclass(frozen=True)
class Bench:
    """State that all parts share."""

    folder: Path
    repeats: int
    display: Display
    quiet: Quiet

    def start(
        self,
        running: ExitStack,
        name: str,
        *,
        is_plaintext: bool = True,
        env: dict[str, str] | None = None,
        bin_dir: Path | None = None,
    ) -> tuple[Stack, Fleet]:
        """Servers that end with `running`. `bin_dir`: a folder of other binaries."""
        folder = self.folder / name
        stack = unbudgeted_stack(folder, Display(quiet=True), is_plaintext, env, bin_dir)
        stack.wipe()
        with self.display.step(f"starting three servers {'without' if is_plaintext else 'with'} TLS"):
            running.callback(_remove, stack, folder)
            running.enter_context(stack)
            with Customer(stack.api_url, "bench") as customer:
                handles = {mode: create_group(customer, mode, mode, folder) for mode in MODES}
        # This checkout's driver, whichever servers it drives: only they differ.
        driver = binary(replace(stack.options, bin_dir=OWN_BINARIES), "quorate-load")
        return stack, Fleet(Target(driver, stack.server_pids(), folder, is_plaintext, self.quiet), handles)

    def repetitions(self, of: str, measure_one: Callable[[], None]) -> None:
        for number in range(1, self.repeats + 1):
            with self.display.step(f"repetition {number} of {self.repeats}, {of}"):
                measure_one()


def _cells(bench: Bench, running: ExitStack, found: Found) -> None:
    """Each cell once in a repetition. Cells that are compared follow one another."""
    _, plain = bench.start(running, "plain")
    _, tls = bench.start(running, "tls", is_plaintext=False)

    def measure_one() -> None:
        for cell in CELLS:
            ours = plain.target.append(cell, [plain.handles[cell.mode]], PACE)
            found.plain[cell].append(ours)
            if cell in COMPARED:
                found.tls[cell].append(tls.target.append(cell, [tls.handles[cell.mode]], PACE))
                found.floor[cell].append(plain.target.floor(cell, max(1, round(ours.batch_entries)), PACE))

    bench.repetitions("one group", measure_one)


def _with_groups(bench: Bench, running: ExitStack) -> tuple[Fleet, dict[Mode, list[Path]]]:
    """A hundred groups of each durability that retain what they may."""
    stack, fleet = bench.start(running, "groups", env=MEASURING_ISOLATION)
    with bench.display.step(f"creating {GROUPS} groups of each durability"):
        groups = {mode: _create_groups(stack, bench.folder / "groups", mode) for mode in MODES}
    with bench.display.step("filling them to what they retain"):
        for mode in MODES:
            fleet.target.append(CELL_64B[mode], groups[mode], FILLING[mode], connections=GROUPS)
            fleet.target.append(CELL_64B[mode], [fleet.handles[mode]], FILLING_ONE)
    return fleet, groups


def _groups(bench: Bench, fleet: Fleet, groups: dict[Mode, list[Path]], found: Found) -> None:
    """Open loops, which have goals, in every repetition; closed ones, which have none, once."""

    def measure_one() -> None:
        for _ in range(GROUPS_PAIRS):
            for mode in MODES:
                for rate in GROUPS_RATES_PER_S:
                    _one_and_many(fleet, mode, groups[mode], rate, found)

    with bench.display.step(f"closed loops of {GROUPS} groups, and of one"):
        _round_of_connections(fleet, groups["mem"], found)
        _one_and_many(fleet, "sync", groups["sync"], None, found)  # that in memory was one of the connections' already
    bench.repetitions(f"{GROUPS} groups beside one", measure_one)


def _isolation(bench: Bench, fleet: Fleet, groups: dict[Mode, list[Path]], found: Found) -> None:
    pairs = ISOLATION_PAIRS * bench.repeats
    with bench.display.step(f"isolation on and off in turn, {pairs} times"):
        for cell in (cell for cell in CELLS if not cell.is_alone):
            load = groups[cell.mode], ISOLATION_RATES_PER_S[cell.name][cell.mode]
            found.isolation[cell] = fleet.target.isolation(cell, *load, pairs, ISOLATION_PACE)


def _spinning(bench: Bench, running: ExitStack, found: Found) -> None:
    _, spinning = bench.start(running, "spin", env={"QUORATE_SPIN_US": str(SPIN_US)})

    def measure_one() -> None:
        for cell in (cell for cell in CELLS if cell.is_alone):
            handles = [spinning.handles[cell.mode]]
            found.spinning[cell].append(spinning.target.append(cell, handles, PACE, spin_us=SPIN_US))

    bench.repetitions("one append at a time, with spinning", measure_one)


def _remove(stack: Stack, folder: Path) -> None:
    for data in ("servers", "postgres", "redis"):
        shutil.rmtree(stack.options.state / data, ignore_errors=True)
    for handle in folder.glob("*.json"):
        handle.unlink()


def _create_groups(stack: Stack, folder: Path, mode: Mode) -> list[Path]:
    def create(numbers: range) -> list[Path]:
        with Customer(stack.api_url, "bench") as customer:
            return [create_group(customer, f"{mode}-{number}", mode, folder, shares=GROUPS) for number in numbers]

    parts = [range(GROUPS)[first : first + GROUPS_PER_CUSTOMER] for first in range(0, GROUPS, GROUPS_PER_CUSTOMER)]
    with ThreadPoolExecutor(len(parts)) as customers:
        return [handle for handles in customers.map(create, parts) for handle in handles]


def _round_of_connections(plain: Fleet, groups: list[Path], found: Found) -> None:
    """A closed loop of one group and of many on as many connections, and of many on one. Beside that, one on one."""
    cell, one = CELL_64B["mem"], [plain.handles["mem"]]
    found.one_group_on_one.append(plain.target.append(cell, one, PACE))
    found.one_group.append(plain.target.append(cell, one, PACE, connections=GROUPS))
    found.many_groups.append(plain.target.append(cell, groups, PACE, connections=GROUPS))
    found.shared_groups.append(plain.target.append(cell, groups, PACE))


def _one_and_many(plain: Fleet, mode: Mode, groups: list[Path], rate_per_s: int | None, found: Found) -> None:
    """The same load by the same connections, to one group and to many. Their order alternates, so that drift falls on
    both."""

    def measured(handles: list[Path]) -> Measured:
        return plain.target.append(CELL_64B[mode], handles, GROUPS_PACE, connections=GROUPS, rate_per_s=rate_per_s)

    pairs = found.same_load[mode, rate_per_s]
    if len(pairs) % 2:
        many, one = measured(groups), measured([plain.handles[mode]])
    else:
        one, many = measured([plain.handles[mode]]), measured(groups)
    pairs.append(Pair(one, many))


def _report(found: Found, command: str, display: Display, seconds: float) -> int:
    kept = figures(found)
    keep(kept, command, FOLDER / "bench.jsonl")
    display.line()
    for line in table(kept):
        display.line(line)
    display.line(
        "\nGoals rest on the peers as seen on two cores; `make bench-peers` measures them beside Quorate in one run."
    )
    display.line("Memory of idle groups: `make claims ONLY=idle`.")
    _warn(found.disturbed(), display)
    return _verdict(kept, display, seconds)


def _warn(disturbed: float, display: Display) -> None:
    if disturbed > OTHERS_SHARE_MAX:
        display.line(
            f"Other processes used up to {disturbed:.0%} of the machine meanwhile: measure again when it is quiet."
        )


def _finish(kept: Sequence[Figure], command: str, display: Display, seconds: float) -> int:
    keep(kept, command, FOLDER / "bench_beside.jsonl")
    display.line()
    for line in table(kept):
        display.line(line)
    _warn(max(figure.others_share or 0.0 for figure in kept), display)
    return _verdict(kept, display, seconds)


def _verdict(kept: Sequence[Figure], display: Display, seconds: float) -> int:
    missed = [figure.name for figure in kept if figure.met is False]
    verdict = f"MISSED: {', '.join(missed)}." if missed else "Every goal that was measured was met."
    display.line(f"\n{verdict} {seconds:.0f} s.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
