"""`make bench BESIDE=FOLDER`: these servers and those of the binaries in the folder, in turn: the cost of a change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from quorate_bench.driver import Measured, Pace, Target
from quorate_harness.cells import CELLS, Cell, Mode
from quorate_harness.figures import Figure

CPU_RATIO_MAX = 1.03
PACE = Pace(warmup_s=0.3, window_s=1.0)  # many short pairs tell more than few long ones: machines drift
QUIET_SHARE = 0.1  # pairs in which others used more of the machine count only where most are such
BESIDE_REPEATS = 8  # two pairs of each cell in each: seven minutes


@dataclass(frozen=True)
class Side:
    """Running servers, and the handles of one group of each durability."""

    target: Target
    handles: Mapping[Mode, Path]

    def append(self, cell: Cell) -> Measured:
        return self.target.append(cell, [self.handles[cell.mode]], PACE)


@dataclass
class Beside:
    ours: Side
    theirs: Side
    pairs: dict[Cell, list[tuple[Measured, Measured]]] = field(default_factory=lambda: defaultdict(list))
    repetitions: int = 0

    def measure(self) -> None:
        """One repetition of every cell: each side first once, so that drift falls on both.

        The side that begins alternates: its first window follows another cell, whose disk writes may still go on.
        """
        self.repetitions += 1
        for cell in CELLS:
            for is_ours_first in [True, False] if self.repetitions % 2 else [False, True]:
                self.pairs[cell].append(self._pair(cell, is_ours_first))

    def _pair(self, cell: Cell, is_ours_first: bool) -> tuple[Measured, Measured]:
        if is_ours_first:
            ours, theirs = self.ours.append(cell), self.theirs.append(cell)
        else:
            theirs, ours = self.theirs.append(cell), self.ours.append(cell)
        return ours, theirs

    def figures(self) -> Sequence[Figure]:
        return [_figure(cell, pairs) for cell, pairs in self.pairs.items()]


def _figure(cell: Cell, pairs: Sequence[tuple[Measured, Measured]]) -> Figure:
    """The servers' processor time an append, ours divided by theirs: the mean of the middle half of all quiet pairs."""
    by_disturbance = sorted(pairs, key=_disturbance)
    quiet = [pair for pair in by_disturbance if _disturbance(pair) <= QUIET_SHARE]
    used = max(quiet, by_disturbance[: (len(pairs) + 1) // 2], key=len)
    ratios = [ours.cpu / theirs.cpu for ours, theirs in used]
    rates = [ours.per_s / theirs.per_s for ours, theirs in used]
    what = "out1_cpu_ratio" if cell.is_alone else "cpu_ratio"
    name = f"beside_{cell.name}_{cell.mode}_{what}"
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    note = f"{len(used)} of {len(pairs)} pairs, {spread}; appends/s {mean_of_middle(rates):.2f}"
    value = mean_of_middle(ratios)
    return Figure(name, value, "ratio", CPU_RATIO_MAX, note=note, others_share=_disturbance(used[-1]))


def mean_of_middle(values: Sequence[float]) -> float:
    """The mean without the lowest and the highest quarter: steadier than the median, and no outlier moves it."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    return fmean(ordered[cut : len(ordered) - cut])


def _disturbance(pair: tuple[Measured, Measured]) -> float:
    """The part of the machine that other processes used, in the worse window of the two."""
    return max(measured.others_share for measured in pair)
