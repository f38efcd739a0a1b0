"""Quorate's goals, judged: bounds of its own, and ratios to the best peer of the same run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from quorate_harness.cells import BESIDE, BOUNDS, UNITS, Beside
from quorate_harness.figures import Figure
from quorate_harness.quiet import is_disturbed
from quorate_peers.results import OURS, OURS_SPINNING, Results


@dataclass(frozen=True)
class Judged:
    """A figure with a goal. `others_share`: the greatest of the windows that it rests on."""

    figure: Figure
    others_share: float

    @property
    def is_disturbed(self) -> bool:
        return is_disturbed(self.others_share)

    def marked(self) -> Figure:
        """The figure, with a mark if its verdict rests on disturbed windows."""
        if not self.is_disturbed:
            return self.figure
        mark = f"DISTURBED: others used {self.others_share:.0%} of the machine"
        return replace(self.figure, note="; ".join(filter(None, (self.figure.note, mark))))


def judged(results: Results) -> Iterator[Judged]:
    """The measured figures with a goal."""
    for bound in BOUNDS:
        value = results.median(OURS, bound.cell, bound.what)
        if value is not None:
            figure = Figure(bound.cell.figure(bound.what), value, UNITS[bound.what], bound.at_most)
            yield Judged(figure, results.others_share(OURS, bound.cell))
    for beside in BESIDE:
        ratio = _ratio(results, beside)
        if ratio is not None:
            yield ratio


def _ratio(results: Results, beside: Beside) -> Judged | None:
    us = OURS_SPINNING if beside.is_spinning else OURS
    ours = results.median(us, beside.cell, beside.what)
    theirs = {
        peer: value
        for peer in results.peers()
        if peer not in (OURS, OURS_SPINNING) and (value := results.median(peer, beside.cell, beside.what)) is not None
    }
    best = beside.best(theirs)
    if ours is None or best is None:
        return None
    name = f"{beside.cell.figure(beside.what, beside.is_spinning)}_over_best_peer_ratio"
    note = f"{ours:,.0f} beside {theirs[best]:,.0f}, {best}"
    figure = Figure(name, ours / theirs[best], "ratio", beside.ratio, beside.more_is_better, note)
    return Judged(figure, max(results.others_share(who, beside.cell) for who in (us, best)))
