"""Several runs of Figure 7, one after another, so that what is published is not the best of some.

A run is disturbed when tenants fell short where nothing was shared: that is the machine's doing. Only that decides
whether a run is repeated, and nothing of what the figure is about. All runs are published, also disturbed ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from quorate_harness.figures import Figure, row, spoken
from quorate_papers import goals
from quorate_papers.seen import Count, Seen, control

CONTROL_MAX = 0.02  # part of the control's intervals, some thirty in a run: one that fell short is beyond
REPEATS_MAX = 2  # per run


@dataclass(frozen=True)
class Attempt:
    """`number`: of the run that it is an attempt of, from 1. The last attempt of a run counts."""

    number: int
    seen: Seen
    counts: bool

    @property
    def control(self) -> Count:
        return control(self.seen)

    @property
    def is_disturbed(self) -> bool:
        return self.control.ratio > CONTROL_MAX

    def document(self) -> dict[str, Any]:
        """Samples only of what counts."""
        seen = self.seen if self.counts else replace(self.seen, samples=[])
        judged = {name: list(count) for name, count in goals.counts(self.seen).items()}
        about = {"run": self.number, "counts": self.counts, "is_disturbed": self.is_disturbed}
        return {**about, "counted": judged, **seen.document()}


@dataclass(frozen=True)
class Spread:
    """A figure of all runs that count. `figure.value` is the median of `values`, which are in the order of the runs."""

    figure: Figure
    values: tuple[float, ...]

    @property
    def met(self) -> int:
        """By so many runs."""
        return sum(replace(self.figure, value=value).met is True for value in self.values)

    def document(self) -> dict[str, Any]:
        about = {"name": self.figure.name, "median": self.figure.value, "unit": self.figure.unit}
        ends = {"least": min(self.values), "greatest": max(self.values), "runs": list(self.values)}
        return {**about, **ends, "goal": self.figure.goal, "met": self.figure.met}


def measure(runs: int, run: Callable[[], Seen], tell: Callable[[str], None]) -> list[Attempt]:
    """As many runs that count; a disturbed one is repeated, and counts when its repeats were disturbed, too."""
    made: list[Attempt] = []
    for number in range(1, runs + 1):
        for repeat in range(REPEATS_MAX + 1):
            tell(f"run {number} of {runs}" + (f", repeated ({repeat} of {REPEATS_MAX} at most)" if repeat else ""))
            one = Attempt(number, run(), counts=False)
            one = replace(one, counts=not one.is_disturbed or repeat == REPEATS_MAX)
            made.append(one)
            tell(_summary(one))
            if one.counts:
                break
    return made


def _summary(one: Attempt) -> str:
    shared = goals.counts(one.seen)["idle_sla_violation_ratio"]
    said = f"intervals below the SLA: {one.control} with nothing shared, {shared} with all that is idle shared"
    if not one.is_disturbed:
        return f"  {said}"
    return f"  {said}; disturbed, {'and counts: it was repeated often enough' if one.counts else 'does not count'}"


def spreads(attempts: list[Attempt]) -> list[Spread]:
    counted = [one.seen for one in attempts if one.counts]
    found = aggregate([list(goals.sharing(seen)) for seen in counted])
    by_run = [goals.counts(seen) for seen in counted]
    return [
        _with_counts(one, [counts[one.figure.name] for counts in by_run if one.figure.name in counts]) for one in found
    ]


def aggregate(by_run: list[list[Figure]]) -> list[Spread]:
    """Medians and extremes, of the same figures of each run."""
    found = []
    for figures in zip(*by_run, strict=True):
        names = {figure.name for figure in figures}
        assert len(names) == 1, f"runs report different figures: {names}"
        values = tuple(figure.value for figure in figures)
        found.append(Spread(replace(figures[0], value=median(values)), values))
    return found


def _with_counts(spread: Spread, counts: list[Count]) -> Spread:
    if not counts:
        return spread
    by_run = ", ".join(map(str, counts))
    return replace(spread, figure=replace(spread.figure, note=f"{by_run} {spread.figure.note}"))


def table(spreads: list[Spread]) -> str:
    lines = ["| figure | median | least | greatest | unit | goal | | how |"]
    lines.append("| --- | ---: | ---: | ---: | --- | --- | --- | --- |")
    for one in spreads:
        name, value, unit, goal, verdict = row(one.figure)
        if one.figure.goal is not None and one.met not in (0, len(one.values)):
            verdict += f" ({one.met} of {len(one.values)} runs met it)"
        ends = f"{spoken(min(one.values))} | {spoken(max(one.values))}"
        lines.append(f"| `{name}` | {value} | {ends} | {unit} | {goal} | {verdict} | {one.figure.note} |")
    return "\n".join(lines)


def rows(attempts: list[Attempt]) -> str:
    """A row for each attempt."""
    lines = [
        "| run | peak, appends/s | SLA | load average | below the SLA, nothing shared | all that is idle shared | |"
    ]
    lines.append("| ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for one in attempts:
        seen, shared = one.seen, goals.counts(one.seen)["idle_sla_violation_ratio"]
        about = f"{seen.peak_per_s:,.0f} | {seen.sla_per_s:,} | {seen.load_average:.1f}"
        lines.append(f"| {one.number} | {about} | {one.control} | {shared} | {_verdict(one)} |")
    return "\n".join(lines)


def _verdict(one: Attempt) -> str:
    if not one.is_disturbed:
        return "counts"
    return f"disturbed, as its {REPEATS_MAX} repeats before: counts" if one.counts else "disturbed: repeated"


def disturbed(attempts: list[Attempt]) -> str:
    """The page's sentence about disturbed runs."""
    again = sum(not one.counts for one in attempts)
    kept = sum(one.counts and one.is_disturbed for one in attempts)
    if not again:
        return "No run was disturbed."
    said = f"{again} of {len(attempts)} runs were disturbed and repeated."
    return f"{said} **{kept} that count were disturbed, too.**" if kept else said
