"""Figures of what was measured, each judged by its goal. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from quorate_bench.driver import Floor, Isolation, Measured
from quorate_harness.cells import (
    COMPARED,
    GROUPS,
    GROUPS_CPU_RATIO,
    ISOLATION_CPU_RATIO,
    ISOLATION_RATES_PER_S,
    MODE_NAMES,
    SPIN_US,
    UNITS,
    WHATS,
    WHATS_ALONE,
    Cell,
    Mode,
    What,
)
from quorate_harness.figures import Figure
from quorate_harness.peer_baseline import goal
from quorate_harness.quiet import Window

OF_WINDOW: dict[What, str] = {"cpu_s_per_m": "cpu", "client_cpu_s_per_m": "client_cpu"}


@dataclass(frozen=True)
class Pair:
    """Two windows that followed one another."""

    one_group: Measured
    many_groups: Measured


@dataclass
class Found:
    """All windows of a run, in the order in which they were measured."""

    plain: dict[Cell, list[Measured]] = field(default_factory=lambda: defaultdict(list))
    tls: dict[Cell, list[Measured]] = field(default_factory=lambda: defaultdict(list))
    spinning: dict[Cell, list[Measured]] = field(default_factory=lambda: defaultdict(list))
    floor: dict[Cell, list[Floor]] = field(default_factory=lambda: defaultdict(list))
    one_group_on_one: list[Measured] = field(default_factory=list)
    one_group: list[Measured] = field(default_factory=list)  # by as many connections as there are groups
    many_groups: list[Measured] = field(default_factory=list)
    shared_groups: list[Measured] = field(default_factory=list)  # the same groups by one connection
    # The same load by the same connections to one group, and to many; of open loops by rate, of closed ones by `None`.
    same_load: dict[tuple[Mode, int | None], list[Pair]] = field(default_factory=lambda: defaultdict(list))
    isolation: dict[Cell, Isolation] = field(default_factory=dict)

    def disturbed(self) -> float:
        """The greatest share of the machine that other processes used in a window."""
        windows: list[Window] = [*self.one_group_on_one, *self.one_group, *self.many_groups, *self.shared_groups]
        for cells in (self.plain, self.tls, self.spinning, self.floor):
            windows += [one for of_cell in cells.values() for one in of_cell]
        windows += self.isolation.values()
        for pairs in self.same_load.values():
            windows += [one for pair in pairs for one in (pair.one_group, pair.many_groups)]
        return max((one.others_share for one in windows), default=0.0)


def figures(found: Found) -> list[Figure]:
    """Medians over the repeats, but closed loops of many groups, measured once; ratios are medians of ratios of windows
    that followed one another."""
    kept = [figure for cell, windows in found.plain.items() for figure in _of_cell(cell, windows)]
    note = f"looking for what comes {SPIN_US} µs long before sleeping; servers and client"
    for cell, windows in found.spinning.items():
        wanted, peer = goal(cell, "p50_us", is_spinning=True)
        said = f"{note}; {peer}" if peer else note
        name = cell.figure("p50_us", is_spinning=True)
        kept.append(Figure(name, _median(windows, "p50_us"), "µs", wanted, note=said))
    if found.one_group:
        kept += _groups(found)
    kept += [_same_load(mode, rate, pairs) for (mode, rate), pairs in found.same_load.items()]
    kept += _isolation(found.isolation)
    for cell in (cell for cell in COMPARED if cell in found.plain):
        kept += _beside_floor(cell, found)
        kept.append(_beside_tls(cell, found))
    return kept


def _isolation(found: dict[Cell, Isolation]) -> list[Figure]:
    """Per cell, and per size with the pairs of both durabilities. The goal holds for each size, so the dearest size is
    judged. Pairs differ by some five hundredths, so the dearest of six cells is mostly noise."""
    if not found:
        return []
    by_size: dict[str, list[Cell]] = defaultdict(list)
    for cell in found:
        by_size[cell.name].append(cell)
    of_cells = [_of_pairs(f"{cell.name}_{cell.mode}", _isolated(cell), one.ratios)[0] for cell, one in found.items()]
    of_sizes = [
        _of_pairs(size, "; ".join(map(_isolated, cells)), [ratio for cell in cells for ratio in found[cell].ratios])
        for size, cells in by_size.items()
    ]
    worst = max((of_size[0] for of_size in of_sizes), key=lambda figure: figure.value)
    note = f"the dearest of {len(of_sizes)} sizes: {worst.note}"
    overhead = Figure("isolation_cpu_overhead_ratio", worst.value, "ratio", ISOLATION_CPU_RATIO, note=note)
    return [*of_cells, *(figure for of_size in of_sizes for figure in of_size), overhead]


def _isolated(cell: Cell) -> str:
    return f"{cell.title.split(',')[0]}, {MODE_NAMES[cell.mode]}, {ISOLATION_RATES_PER_S[cell.name][cell.mode]:,}/s"


def _of_pairs(of: str, load: str, ratios: Sequence[float]) -> list[Figure]:
    """Their median and quartiles."""
    name = f"isolation_{of}_cpu_ratio"
    low, middle, high = quantiles(ratios, n=4)
    note = f"{load} over {GROUPS} groups: with isolation, divided by without; {len(ratios)} pairs, "
    note += f"quartiles {low:.3f} to {high:.3f}"
    quartiles = (Figure(f"{name}_{q}", value, "ratio") for q, value in (("q1", low), ("q3", high)))
    return [Figure(name, middle, "ratio", note=note), *quartiles]


def _of_cell(cell: Cell, windows: list[Measured]) -> list[Figure]:
    kept = []
    for what in WHATS_ALONE if cell.is_alone else WHATS:
        wanted, peer = goal(cell, what)
        note = "the driver's" if what == "client_cpu_s_per_m" else "; ".join(filter(None, (cell.title, peer)))
        value = _median(windows, OF_WINDOW.get(what, what))
        kept.append(Figure(cell.figure(what), value, UNITS[what], wanted, more_is_better=what == "per_s", note=note))
    note = "of the machine, by others and the host, in the most disturbed window"
    kept.append(Figure(cell.figure("others_share"), max(one.others_share for one in windows), "ratio", note=note))
    return kept


def _groups(found: Found) -> list[Figure]:
    """Closed loops: many groups come at another rate than one, and in batches of another size. No goal is for that; the
    same load is in `_same_load`."""
    name, alone = f"append_64b_mem_{GROUPS}_groups", found.one_group_on_one
    small, large = (f"{_median(windows, 'batch_entries'):,.0f}" for windows in (found.shared_groups, alone))
    return [
        Figure(
            f"{name}_cpu_ratio",
            _cpu_ratio(found.many_groups, found.one_group),
            "ratio",
            note=f"closed loop: {GROUPS} connections to {GROUPS} groups, divided by {GROUPS} connections to one",
        ),
        Figure(
            f"{name}_shared_cpu_ratio",
            _cpu_ratio(found.shared_groups, found.one_group),
            "ratio",
            note=f"closed loop: {GROUPS} groups on one connection, divided by {GROUPS} to one: batches of {small}",
        ),
        Figure(
            f"{name}_to_one_connection_cpu_ratio",
            _cpu_ratio(found.shared_groups, alone),
            "ratio",
            note=f"closed loop: divided by one connection to one group: batches of {small} against {large} entries",
        ),
    ]


def _same_load(mode: Mode, rate_per_s: int | None, pairs: Sequence[Pair]) -> Figure:
    ratio = median(pair.many_groups.cpu / pair.one_group.cpu for pair in pairs)
    one = median(pair.one_group.batch_entries for pair in pairs)
    many = median(pair.many_groups.batch_entries for pair in pairs)
    how = f"open loop, {rate_per_s:,}/s" if rate_per_s else "closed loop"
    middle = f"open_{rate_per_s // 1000}k_" if rate_per_s else ""
    note = (
        f"{MODE_NAMES[mode]}, {how}: {GROUPS} connections to {GROUPS} groups, divided by {GROUPS} to one; "
        f"batches of {many:.1f} and {one:.1f}; {f'{len(pairs)} pairs' if len(pairs) > 1 else 'once'}"
    )
    wanted = GROUPS_CPU_RATIO if rate_per_s else None
    return Figure(f"append_64b_{mode}_{GROUPS}_groups_{middle}cpu_ratio", ratio, "ratio", wanted, note=note)


def _cpu_ratio(ours: list[Measured], beside: list[Measured]) -> float:
    return float(median(one.cpu / other.cpu for one, other in zip(ours, beside, strict=True)))


def _beside_floor(cell: Cell, found: Found) -> list[Figure]:
    pairs = list(zip(found.plain[cell], found.floor[cell], strict=True))
    p50 = median(ours.p50_us / floor.p50_us for ours, floor in pairs)
    p50_note = f"the floor's: {median(floor.p50_us for _, floor in pairs):,.0f} µs"
    if cell.is_alone:
        return [Figure(cell.figure("floor_p50_ratio"), p50, "ratio", note=p50_note)]
    cpu = median(ours.cpu / floor.cpu for ours, floor in pairs)
    cpu_note = f"the floor's: {median(floor.cpu for _, floor in pairs):.3g} s"
    return [Figure(cell.figure("floor_cpu_ratio"), cpu, "ratio", note=cpu_note)]


def _beside_tls(cell: Cell, found: Found) -> Figure:
    pairs = list(zip(found.tls[cell], found.plain[cell], strict=True))
    if cell.is_alone:
        ratio = median(tls.p50_us / plain.p50_us for tls, plain in pairs)
        return Figure(cell.figure("tls_p50_ratio"), ratio, "ratio", note="TLS on every link, divided by plaintext")
    ratio = median(tls.cpu / plain.cpu for tls, plain in pairs)
    return Figure(cell.figure("tls_cpu_ratio"), ratio, "ratio", note="TLS on every link, divided by plaintext")


def _median(windows: list[Measured], what: str) -> float:
    return float(median(getattr(one, what) for one in windows))
