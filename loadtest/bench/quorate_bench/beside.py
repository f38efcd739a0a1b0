"""`make bench BESIDE=FOLDER`: these servers and those of the binaries in the folder, in turn: the cost of a change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from quorate_bench.driver import Measured, Pace, Target
from quorate_harness.cells import CELLS, Cell, Mode
from quorate_harness.figures import Figure

CPU_RATIO_MAX = 1.03
PACE = Pace(warmup_s=0.3, window_s=1.0)  # many short pairs tell more than few long ones: machines drift
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
    """The servers' processor time an append, ours divided by theirs: the median of the quieter half of all pairs."""
    quieter = sorted(pairs, key=_disturbance)[: (len(pairs) + 1) // 2]
    ratios = sorted(ours.cpu / theirs.cpu for ours, theirs in quieter)
    rates = median(ours.per_s / theirs.per_s for ours, theirs in quieter)
    what = "out1_cpu_ratio" if cell.is_alone else "cpu_ratio"
    name = f"beside_{cell.name}_{cell.mode}_{what}"
    note = f"{len(ratios)} of {len(pairs)} pairs, {ratios[0]:.2f} to {ratios[-1]:.2f}; appends/s {rates:.2f}"
    return Figure(name, median(ratios), "ratio", CPU_RATIO_MAX, note=note, others_share=_disturbance(quieter[-1]))


def _disturbance(pair: tuple[Measured, Measured]) -> float:
    """The part of the machine that other processes used, in the worse window of the two."""
    return max(measured.others_share for measured in pair)
