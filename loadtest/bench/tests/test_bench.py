from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from quorate_bench import cli
from quorate_bench.beside import Beside, mean_of_middle
from quorate_bench.driver import Floor, Isolation, Measured, Pace, Target
from quorate_bench.verdict import Found, Pair, figures
from quorate_harness.cells import CELLS, COMPARED, Cell
from quorate_harness.figures import Figure

WINDOW = Measured(per_s=2e6, p50_us=60, p99_us=900, cpu=0.5, client_cpu=0.1, batch_entries=256, others_share=0.01)
OF_64B = ("64b_mem_cpu_ratio", "64b_cpu_ratio", "64b_cpu_ratio_q1", "64b_cpu_ratio_q3")


def _found(**changed: Any) -> Found:
    found = Found(
        isolation={CELLS[0]: Isolation([1.03, 1.00, 1.01], 0.02), CELLS[4]: Isolation([1.0, 0.99, 1.0], 0.02)}
    )
    for cell in CELLS:
        found.plain[cell] = [replace(WINDOW, cpu=cpu, **changed) for cpu in (0.5, 0.9, 0.6)]
    for cell in COMPARED:
        found.tls[cell] = [replace(WINDOW, cpu=cpu, p50_us=90) for cpu in (0.75, 0.9, 0.6)]
        found.floor[cell] = [Floor(p50_us=30, cpu=0.25, others_share=0.01)] * 3
    found.one_group_on_one = [replace(WINDOW, cpu=0.9)] * 3
    found.one_group = [replace(WINDOW, cpu=0.8)] * 3
    found.many_groups = [replace(WINDOW, cpu=cpu) for cpu in (1.0, 0.8, 0.84)]
    found.shared_groups = [replace(WINDOW, cpu=cpu) for cpu in (0.4, 0.72, 0.9)]
    found.spinning[CELLS[-2]] = [replace(WINDOW, p50_us=p50) for p50 in (40, 70, 55)]
    return found


def _by_name(found: Found) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures(found)}


def test_medians_are_judged_by_their_goals() -> None:
    kept = _by_name(_found())
    assert (kept["append_64b_mem_cpu_s_per_m"].value, kept["append_64b_mem_cpu_s_per_m"].met) == (0.6, True)
    assert kept["append_64b_mem_per_s"].met is True
    assert kept["append_64b_mem_out1_p50_us"].met is True
    assert kept["append_64b_mem_out1_spin_p50_us"].met is False  # 55 against 51.25
    assert "append_64b_mem_out1_per_s" not in kept


def test_a_part_is_judged_alone() -> None:
    kept = _by_name(Found(isolation={CELLS[0]: Isolation([1.03, 1.00, 1.01], 0.02)}))
    assert set(kept) == {f"isolation_{name}" for name in (*OF_64B, "cpu_overhead_ratio")}
    assert figures(Found()) == []
    with pytest.raises(SystemExit):
        cli.main(["--only", "isolation,nothing"])


def test_a_slow_machine_misses_the_rate() -> None:
    assert _by_name(_found(per_s=1e5))["append_64b_mem_per_s"].met is False


def test_ratios_are_of_windows_that_followed_one_another() -> None:
    kept = _by_name(_found())
    assert (kept["isolation_64b_mem_cpu_ratio"].value, kept["isolation_16k_mem_cpu_ratio"].value) == (1.01, 1.0)
    assert (kept["isolation_cpu_overhead_ratio"].value, kept["isolation_cpu_overhead_ratio"].met) == (1.01, True)
    assert abs(kept["append_64b_mem_100_groups_cpu_ratio"].value - 1.05) < 1e-9
    assert abs(kept["append_64b_mem_100_groups_shared_cpu_ratio"].value - 0.9) < 1e-9
    assert abs(kept["append_64b_mem_100_groups_to_one_connection_cpu_ratio"].value - 0.8) < 1e-9
    assert kept["append_64b_mem_tls_cpu_ratio"].value == 1.0
    assert kept["append_64b_mem_out1_tls_p50_ratio"].value == 1.5
    assert abs(kept["append_64b_mem_floor_cpu_ratio"].value - 2.4) < 1e-9
    assert kept["append_64b_mem_out1_floor_p50_ratio"].value == 2.0


def test_groups_are_compared_by_the_same_load() -> None:
    found = _found()
    found.same_load["sync", 300_000] = [
        Pair(replace(WINDOW, cpu=one, batch_entries=8), replace(WINDOW, cpu=many, batch_entries=7))
        for one, many in ((1.0, 1.3), (2.0, 2.1), (0.5, 0.6))
    ]
    found.same_load["sync", None] = [Pair(WINDOW, WINDOW)]
    kept = _by_name(found)
    figure = kept["append_64b_sync_100_groups_open_300k_cpu_ratio"]
    assert (figure.value, figure.goal, figure.met) == (1.2, 1.1, False)
    assert "300,000/s: 100 connections" in figure.note
    assert "batches of 7.0 and 8.0" in figure.note
    assert kept["append_64b_sync_100_groups_cpu_ratio"].met is None, "a closed loop is another load"


@dataclass
class _Loaded:
    """Servers of which one group's appends cost 1.0, many groups' 1.5."""

    handles: list[int] = field(default_factory=list)

    def append(self, _cell: Cell, handles: list[Path], _pace: Pace, **_load: int | None) -> Measured:
        self.handles.append(len(handles))
        return replace(WINDOW, cpu=1.0 if len(handles) == 1 else 1.5)


def test_one_group_and_many_take_turns_to_be_first() -> None:
    loaded, found = _Loaded(), Found()
    fleet = cli.Fleet(cast(Target, loaded), {"mem": Path("one"), "sync": Path("other")})
    for _ in range(3):
        cli._one_and_many(fleet, "mem", [Path("a"), Path("b")], 1_000, found)
    assert loaded.handles == [1, 2, 2, 1, 1, 2]
    assert [(pair.one_group.cpu, pair.many_groups.cpu) for pair in found.same_load["mem", 1_000]] == [(1.0, 1.5)] * 3


def test_a_disturbance_is_named() -> None:
    assert _found(others_share=0.2).disturbed() == 0.2
    paired = _found()
    paired.same_load["mem", None] = [Pair(WINDOW, replace(WINDOW, others_share=0.25))]
    assert paired.disturbed() == 0.25
    floor, isolation = _found(), _found()
    floor.floor[COMPARED[0]].append(Floor(30, 0.25, others_share=0.3))
    isolation.isolation[CELLS[0]] = Isolation([1.0, 1.0], others_share=0.4)
    assert (floor.disturbed(), isolation.disturbed()) == (0.3, 0.4)


def test_goals_rest_on_the_best_peer_that_was_seen() -> None:
    kept = {figure.name: figure for figure in figures(_found())}
    assert kept["append_64b_mem_per_s"].goal == 2 * 904e3
    assert kept["append_16k_mem_per_s"].goal == 1.5 * 27e3
    assert kept["append_64b_sync_p99_us"].goal == 3632
    assert kept["append_64b_mem_out1_p50_us"].goal == 0.5 * 205, "not of hashicorp/raft, which has no client's hop"
    assert kept["append_64b_sync_out1_p50_us"].goal == 0.6 * 523
    assert "NATS" in kept["append_64b_mem_out1_spin_p50_us"].note


def test_isolation_is_judged_by_the_size_where_it_is_dearest() -> None:
    found = _found()
    found.isolation[CELLS[4]] = Isolation([1.0, 0.98, 0.99], 0.02)
    found.isolation[CELLS[5]] = Isolation([1.05, 1.03, 1.07, 1.06, 1.08], 0.02)
    kept = _by_name(found)
    assert (kept["isolation_16k_mem_cpu_ratio"].value, kept["isolation_16k_sync_cpu_ratio"].value) == (0.99, 1.06)
    assert kept["isolation_16k_cpu_ratio"].value == 1.04, "of the pairs of both"
    assert (kept["isolation_cpu_overhead_ratio"].value, kept["isolation_cpu_overhead_ratio"].met) == (1.04, False)
    assert "16 KB, synced, 6,000/s over 100 groups" in kept["isolation_cpu_overhead_ratio"].note
    low, high = (kept[f"isolation_16k_cpu_ratio_{quartile}"].value for quartile in ("q1", "q3"))
    assert (low, high) == pytest.approx((0.9925, 1.0675))


class _Constant:
    """A side whose windows all cost the same, but for each of a number, which others disturbed."""

    def __init__(self, cpu: float, disturbed_every: int) -> None:
        self.cpu = cpu
        self.disturbed_every = disturbed_every
        self.windows = 0

    def append(self, _cell: Cell) -> Measured:
        self.windows += 1
        if self.windows % self.disturbed_every == 0:
            return replace(WINDOW, cpu=9 * self.cpu, others_share=0.5)
        return replace(WINDOW, cpu=self.cpu)


def test_two_versions_are_compared_by_quiet_pairs() -> None:
    # Never both of a pair, or their ratio would hide it.
    ours, theirs = _Constant(0.51, 4), _Constant(0.5, 1_000)
    compared = Beside(cast(Any, ours), cast(Any, theirs))
    for _ in range(8):
        compared.measure()
    found = compared.figures()
    assert len(found) == len(CELLS)
    for figure in found:
        assert figure.value == pytest.approx(1.02)
        assert figure.met
        assert "of 16 pairs" in figure.note


def test_outliers_do_not_move_the_mean_of_the_middle() -> None:
    assert mean_of_middle([1.0, 1.2, 1.1, 50.0, 0.0]) == pytest.approx(1.1)
    assert mean_of_middle([1.5]) == 1.5
