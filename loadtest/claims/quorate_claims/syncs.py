"""A persistent append costs the hops plus one sync, not one sync for each replica.

One append at a time, to groups of degree 1, 3 and 5, in memory and persistent, in turn. The difference of the two
medians is the cost of persistence at a degree: it should not grow with the degree. On one machine all servers share one
disk and a few cores, which makes it grow. Three and five bare processes that sync at once show by how much.

So the same is measured with a known delay of 5 ms before each sync, as a slow disk has it. An append becomes slower by
some number of such delays: that many syncs wait one for another. That number is the claim; the rest is for comparison.
"""

from __future__ import annotations

import struct
import subprocess
from collections import defaultdict
from pathlib import Path

from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.quantiles import median
from quorate_harness.steady import append_once
from quorate_local.native import CannotCompile, compile_preload, compile_program

SERVERS = 5
DEGREES = (1, 3, 5)
# Per group. A bucket holds one second of this rate at the begin of a window. One append at a time comes to less, so the
# budget holds nothing back.
RATE_PER_S = 40_000
REPEATS, REPEATS_SLOW = 9, 3
WARMUP_S, SECONDS, SECONDS_SLOW = 0.1, 0.5, 1.0
DELAY_US = 5_000
RATIO_MAX = 1.5
SHIM = Path(__file__).with_name("slow_sync.c")
AT_ONCE = Path(__file__).with_name("syncs_at_once.c")
AT_ONCE_ROUNDS, AT_ONCE_REPEATS = 1_000, 3

Cell = tuple[str, int]  # mode ("in_memory", "persistent", "slow"), degree


def measure(conditions: Conditions) -> list[Figure]:
    conditions.folder.mkdir(parents=True, exist_ok=True)
    try:
        delay = Delay(conditions.folder)
    except CannotCompile as error:
        raise MeasurementFailed(str(error)) from error
    repeats, repeats_slow = (1, 1) if conditions.quick else (REPEATS, REPEATS_SLOW)
    with fleet(conditions.folder, conditions.display, SERVERS, server_env=delay.environment()) as servers:
        handles = {
            (durability, degree): servers.handle_file(
                servers.create_group(f"{durability}-{degree}", durability, RATE_PER_S, replication_degree=degree)
            )
            for degree in DEGREES
            for durability in ("in_memory", "persistent")
        }
        p50s = _repetitions(servers, conditions, handles, repeats)
        delay.set(DELAY_US)
        slow = {("slow", degree): handles["persistent", degree] for degree in DEGREES}
        p50s |= _repetitions(servers, conditions, slow, repeats_slow)
    medians = {cell: median(values) for cell, values in p50s.items()}
    medians |= _syncs_at_once(conditions)
    for line in _table(medians):
        conditions.display.line(f"  {line}")
    return figures(medians)


def _syncs_at_once(conditions: Conditions) -> dict[Cell, float]:
    """Time the disk takes for so many syncs at once: the longest of them, median, in microseconds."""
    program = conditions.folder / "syncs_at_once"
    compile_program(AT_ONCE, program, "-pthread")
    found: dict[Cell, list[float]] = defaultdict(list)
    for _ in range(AT_ONCE_REPEATS):
        for processes in DEGREES:
            conditions.display.progress(f"  {processes} bare processes sync at once")
            command = [str(program), str(conditions.folder), str(processes), str(AT_ONCE_ROUNDS)]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
            found["bare", processes].append(float(done.stdout))
    return {cell: median(values) for cell, values in found.items()}


def _repetitions(
    servers: Fleet, conditions: Conditions, handles: dict[Cell, Path], repeats: int
) -> dict[Cell, list[float]]:
    """p50 in microseconds of each cell, `repeats` times, the cells in turn."""
    found: dict[Cell, list[float]] = defaultdict(list)
    for number in range(repeats):
        for cell, handle in handles.items():
            mode, degree = cell
            conditions.display.progress(f"  repetition {number + 1} of {repeats}: {mode}, degree {degree}")
            seconds = SECONDS_SLOW if mode == "slow" else SECONDS
            flags = ["--outstanding", "1", "--seconds", str(seconds), "--warmup", str(WARMUP_S)]
            found[cell].append(append_once(servers, handle, conditions.folder, *flags)["p50_us"])
    return dict(found)


def figures(p50_us: dict[Cell, float]) -> list[Figure]:
    """`p50_us`: of each cell. Pure."""

    def cost(degree: int) -> float:
        return p50_us["persistent", degree] - p50_us["in_memory", degree]

    def beside_bare(degree: int) -> float:
        return _ratio(cost(degree), cost(1)) / (p50_us["bare", degree] / p50_us["bare", 1])

    def delays(degree: int) -> float:
        return (p50_us["slow", degree] - p50_us["persistent", degree]) / DELAY_US

    spoken = ", ".join(f"degree {degree}: {cost(degree):,.0f}" for degree in DEGREES)
    note = f"one append at a time; p50 persistent less p50 in memory, µs: {spoken}; all servers on one disk"
    beside_note = "the first ratio over that of bare syncs: what is more than one sync, and wake-ups for want of cores"
    bare_note = "the longest of as many bare processes that write a page and sync at the same moment, on the same disk"
    slow_note = f"delays of {DELAY_US / 1000:.0f} ms before each sync that an append waits for; 3 if they were serial"
    return [
        Figure("sync_cost_degree3_over_degree1_ratio", _ratio(cost(3), cost(1)), "ratio", note=note),
        Figure("bare_syncs_3_at_once_over_1_ratio", p50_us["bare", 3] / p50_us["bare", 1], "ratio", note=bare_note),
        Figure("bare_syncs_5_at_once_over_1_ratio", p50_us["bare", 5] / p50_us["bare", 1], "ratio"),
        Figure("sync_cost_degree5_over_degree1_ratio", _ratio(cost(5), cost(1)), "ratio"),
        Figure("sync_cost_degree3_beside_bare_syncs_ratio", beside_bare(3), "ratio", RATIO_MAX, note=beside_note),
        Figure("sync_cost_degree5_beside_bare_syncs_ratio", beside_bare(5), "ratio", RATIO_MAX),
        Figure("syncs_in_series_degree3", delays(3), "syncs", RATIO_MAX, note=slow_note),
        Figure("syncs_in_series_degree5", delays(5), "syncs", RATIO_MAX),
    ]


def _ratio(cost_us: float, of_cost_us: float) -> float:
    if of_cost_us <= 0:
        raise MeasurementFailed(
            f"a sync seems to cost {of_cost_us:.0f} µs at degree 1: the disk does not sync, or the load drowns it"
        )
    return cost_us / of_cost_us


def _table(p50_us: dict[Cell, float]) -> list[str]:
    names = {
        "in_memory": "in memory",
        "persistent": "persistent",
        "bare": "as many bare syncs at once",
        "slow": f"persistent, syncs {DELAY_US // 1000} ms slower",
    }
    lines = [f"{'p50 of one append, µs':<34}" + "".join(f"{f'degree {degree}':>12}" for degree in DEGREES)]
    for mode, name in names.items():
        lines.append(f"{name:<34}" + "".join(f"{p50_us[mode, degree]:>12,.0f}" for degree in DEGREES))
    return lines


class Delay:
    """The delay before each sync of the servers; none at first."""

    def __init__(self, folder: Path) -> None:
        self._file = folder.resolve() / "slow-sync-us"
        self._shim = folder.resolve() / "slow_sync.so"
        self._file.write_bytes(struct.pack("=I", 0))
        compile_preload(SHIM, self._shim)

    def environment(self) -> dict[str, str]:
        """The servers' environment."""
        return {"LD_PRELOAD": str(self._shim), "SLOW_SYNC_FILE": str(self._file)}

    def set(self, delay_us: int) -> None:
        """From the next sync on: the servers have this very file mapped."""
        with self._file.open("r+b") as stream:
            stream.write(struct.pack("=I", delay_us))
