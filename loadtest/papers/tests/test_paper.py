"""Instances are the same everywhere and as the tool understands them; goals are judged; the solver is exact."""

import itertools
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from quorate_harness.figures import Figure
from quorate_papers import (
    alloc,
    conservation,
    conservation_goals,
    costs,
    page,
    placement,
    placement_goals,
    program,
    testbed,
    tool,
)
from quorate_papers.instances import KINDS, OURS, PAPER, applicants, most_wanted, most_wanted_more
from quorate_papers.solver import optimum

needs_tool = pytest.mark.skipif(not tool.BINARY.exists(), reason="`make rust` builds quorate-planner")


def _sla(rate: int, degree: int = 3) -> dict[str, object]:
    return {"durability": "in_memory", "replication_degree": degree, "request_size_bytes": 64, "rate_per_s": rate}


@needs_tool
def test_a_seed_makes_one_instance() -> None:
    assert applicants(7, 20) == applicants(7, 20) != applicants(8, 20)
    assert applicants(7, 20)[:10] == applicants(7, 10)


@needs_tool
def test_the_solver_finds_what_fits() -> None:
    # Every group is on each of three servers of 1.3 cores. The two largest fit when their heads are apart.
    instance = {
        "servers": [{"id": f"s{n}", "capacity": [1.3, 1e9, 1.0]} for n in range(3)],
        "applicants": [{"id": f"a{n}", "sla": _sla(rate)} for n, rate in enumerate((500_000, 400_000, 300_000))],
    }
    best = optimum(instance, 0, 10)
    assert best.proven
    heads, others = 0.75 + 0.6, 0.6 * 2 + 0.48 * 2
    assert best.found == pytest.approx((heads + others) / (3 * 1.3), abs=1e-4)


def test_deviation_is_zero_when_all_get_the_same() -> None:
    answer = {"tenants": [{"id": name, "utility_per_s": amount} for name, amount in (("a", 5), ("b", 5), ("c", 0))]}
    assert conservation.deviation(answer, {"a", "b"}) == 0
    assert conservation.deviation(answer, {"a", "b", "c"}) == pytest.approx(0.7071, abs=1e-4)


def test_costs_are_plotted_from_cells(tmp_path: Path) -> None:
    def cell(durability: str, shards: int, size: int, ns: float) -> dict[str, object]:
        used = {"cpu_ns": 0.5, "busiest_ns": 0.25, "written_bytes": 0}
        roles = [{"role": "head", "cpu_ns": ns, "busiest_ns": ns, "written_bytes": 0}] if shards == 1 else []
        rest = {"acked_per_s": 1e9 / ns, "servers": [used, {**used, "cpu_ns": 0.1}], "roles": roles}
        return {"durability": durability, "shards": shards, "size_bytes": size, **rest}

    series = itertools.product(costs.DURABILITIES, (1, 2), (64, 1_024), (1_000.0, 9_000.0, 2_000.0))
    about = {"version": "v", "source": "a test", "servers_version": "0", "machine": {"cores": 2, "cpu": "c"}}
    error = {"median": 0.1, "worst": 0.2, "understated": 1.3, "understated_others_cores": 0.04, "mixes": [{}]}
    cells = tmp_path / "cells.json"
    cells.write_text(json.dumps({**about, "error": error, "cells": [cell(*one) for one in series]}))
    points = costs.points(costs.read(cells))
    assert len(points) == 8
    assert {(point.cores, point.busiest, point.per_s) for point in points} == {(0.5, 0.25, 5e5)}
    assert {point.head_us for point in points} == {2.0, None}, "the median; two shards tell no roles apart"
    assert program.main(["--only", "fig3", "--cells", str(cells), "--publish", str(tmp_path)]) == 0
    written = (tmp_path / "figure-3.md").read_text()
    assert "10.0%" in written
    assert "1.30 times the prediction, while others used 0.04 cores" in written
    assert "With a second shard, persistent throughput is 1.00 to 1.00 times that with one" in written
    assert (tmp_path / "figure-3.svg").stat().st_size > 0
    assert program.main(["--only", "fig3", "--cells", str(tmp_path / "none"), "--publish", str(tmp_path)]) == 1


def _cost(durability: str, shards: int, size: int, per_s: float, head_us: float | None = None) -> costs.Point:
    return costs.Point(durability, shards, size, per_s, cores=1.0, busiest=0.5, head_us=head_us)


def test_what_a_page_says_of_throughput_follows_from_its_points() -> None:
    rates = {"in_memory": (900.0, 500.0), "persistent": (600.0, 300.0)}
    one = [
        _cost(mode, 1, size, rate, 1e6 / rate)
        for mode in rates
        for size, rate in zip((64, 128), rates[mode], strict=True)
    ]
    shards = {"in_memory": (1.5, 1.2), "persistent": (0.8, 1.1)}
    two = [
        _cost(mode, 2, size, rate * more)
        for mode in rates
        for size, rate, more in zip((64, 128), rates[mode], shards[mode], strict=True)
    ]
    said = "\n".join(costs.claims([*one, *two]))
    assert "in-memory throughput is 1.20 to 1.50 times that with one. It rises at 2 of 2 sizes, as in the paper" in said
    assert (
        "persistent throughput is 0.80 to 1.10 times that with one. It rises at 1 of 2 sizes, unlike the paper" in said
    )
    assert "lower in 4 of 4 cells" in said
    assert "rises in 0 of 4 steps to the next size" in said
    assert "at the head rises in 2 of 2 steps" in said


@needs_tool
def test_figures_of_a_small_run() -> None:
    found = conservation.points(range(1, 3), [10], 1)
    first, second = ({point.algorithm for point in found if point.seed == seed} for seed in (1, 2))
    assert first == {*conservation.ALGORITHMS, conservation.MORE_ROUNDS}
    assert second == {*conservation.CHEAP, conservation.MORE_ROUNDS}
    assert all((point.speedup is None) == (point.seed == 2) for point in found)
    assert all(point.efficiency <= 1.01 for point in found if point.algorithm in ("all", "level"))
    figures = {figure.name: figure for figure in conservation_goals.conservation(found)}
    assert figures["cdrf_exact_speedup"].met is True
    assert figures["cdrf_exact_deviation"].met is True
    assert figures["alldrf_efficiency"].met is False
    assert figures["leveldrf_speedup"].met is True
    assert figures["leveldrf_speedup_exact"].met is False, "the exact central algorithm is faster"
    for algorithm in placement.ALGORITHMS:
        point = placement._point("offline", algorithm, 30, range(1, 3), OURS)
        assert 0 < point.allocated <= 1
        assert point.used_servers == placement.SERVERS


@needs_tool
def test_placement_beyond_algorithm_1() -> None:
    rows = placement.kinds(range(50, 56), 150)
    assert {row["kind"] for row in rows} == {kind.name for kind in KINDS}
    by_order = {order: [row for row in rows if row["order"] == order] for order in placement.ORDERS}
    for row in by_order["offline"]:
        assert row["shape_fullest"] > max(0.99, row["filo_fullest"]), row
    assert fmean(row["shape"] - row["filo"] for row in by_order["offline"]) > 0.005
    for row in by_order["online, as drawn"]:
        assert row["shape_fullest"] > row["filo_fullest"] + 0.005, row
    # In increasing order the rest is less than the next applicant: one kind may lose and another win.
    assert fmean(row["shape"] - row["filo"] for row in by_order["online, increasing"]) > 0


@needs_tool
def test_cpu_is_scarce_on_the_papers_testbed() -> None:
    point = placement._point("online", "filo", 150, range(1, 6), PAPER)
    assert point.scarce == [5, 0, 0]
    assert 150 < point.replicas < 250, "the paper: about 200"
    assert testbed.request("in_memory", 64) == (5_882_353, 64, 0)
    assert testbed.request("in_memory", 2_048)[0] == 6_666_667
    assert [testbed.request("persistent", size)[2] for size in (8_192, 16_384, 32_768)] == [2, 4, 8]
    assert testbed.peak_per_s("in_memory", 64) == pytest.approx(76_000, rel=1e-6)
    assert testbed.peak_per_s("persistent", 8_192) == 20_000


@needs_tool
def test_tenants_of_the_papers_testbed_share_their_cpu() -> None:
    found = {point.algorithm: point for point in conservation.points(range(1, 2), [50], 1, regime=PAPER)}
    assert found["cdrf-exact"].efficiency == pytest.approx(1, abs=0.01)
    assert 0.1 < found["head"].efficiency < found["all"].efficiency < found["level"].efficiency
    rows = conservation.by_demand(range(1, 2), 50, regime=PAPER)
    assert all(row["efficiency"]["level"] > 0.9 for row in rows)


@needs_tool
def test_speed_up_grows_with_the_fleet() -> None:
    small, large = conservation.by_fleet(range(1, 3), 1, 1, (10, 40))
    assert large["speedup"]["all"] > 1.3 * small["speedup"]["all"]
    # Its servers compute for their neighbours too, and a larger fleet has more: it stays ahead by as much.
    assert large["speedup"]["level"] > max(500, 0.5 * small["speedup"]["level"])
    assert 0.9 < large["worst_efficiency"]["level"] <= large["efficiency"]["level"] < 1.01


def _fleet(servers: int, level: float, efficiency: float = 1.0) -> dict[str, Any]:
    speedup, exact = {"all": servers, "level": level}, {"all": 0.1, "level": 0.5}
    each = {one: [(4 * servers, value), (4 * servers + 1, value)] for one, value in speedup.items()}
    efficiencies = {
        "efficiency": {"level": efficiency},
        "worst_efficiency": {"level": efficiency},
        "speedup_by_tenants": each,
    }
    return {
        "servers": servers,
        "tenants": 4 * servers,
        "instances": 2,
        "speedup": speedup,
        "speedup_exact": exact,
        **efficiencies,
    }


def test_growth_is_of_all_instances_and_a_fall_between_two_fleets_is_named() -> None:
    rows = [_fleet(10, 7_000), _fleet(20, 14_000), _fleet(40, 12_000), _fleet(80, 16_000, 0.97)]
    figures = {figure.name: figure for figure in conservation_goals.growth(rows)}
    growth = figures["alldrf_speedup_growth"]
    assert (growth.value, growth.met) == (pytest.approx(1, abs=0.03), True)
    assert "8 instances: 1.01, twice the tenants, 2.0" in growth.note
    assert 0 < figures["leveldrf_speedup_growth"].value < 0.3
    assert "not monotone" in figures["leveldrf_speedup_growth"].note
    assert figures["leveldrf_efficiency_80_servers"].value == 0.97
    assert "Level-DRF's is not monotone: it falls from 20 to 40 servers (× 0.86)." in page.growth(rows)
    assert "All-DRF's grows with each fleet." in page.growth(rows)
    falling = conservation_goals.growth([_fleet(10, 7_000), _fleet(20, 9_000), _fleet(40, 6_000)])
    assert [figure.met for figure in falling if figure.name == "leveldrf_speedup_growth"] == [False]


def test_a_missed_goal_is_an_exit_code_whatever_was_run() -> None:
    met, missed, plain = (Figure(name, 1, "ratio", goal) for name, goal in (("a", 1), ("b", 0.5), ("c", None)))
    assert program.judged([met, plain]) == 0
    assert program.judged([met, missed, plain]) == 1


@needs_tool
def test_ten_thousand_tenants_of_a_server_get_what_there_is() -> None:
    row = conservation.many_tenants(1, 1)
    assert row["rounds"] == 4
    assert row["efficiency"] > 0.98


@needs_tool
def test_modest_demands_are_met_by_all_algorithms() -> None:
    rows = conservation.by_demand(range(1, 4), 150)
    modest = [row["efficiency"] for row in rows if row["demand"] == 0.25]
    assert all(one["head"] > 0.99 and one["all"] > 0.99 for one in modest)
    again = {figure.name: figure.value for figure in conservation_goals.bounded(rows)}
    assert 0.5 < again["headdrf_efficiency_bounded"] < again["alldrf_efficiency_bounded"] < 1


@needs_tool
def test_what_the_tool_refuses_is_said() -> None:
    with pytest.raises(tool.Refused, match=r"servers\[0\]\.capacity"):
        alloc.place({"servers": [{"id": "s", "capacity": [1]}]}, "online")


def _shared(algorithm: str, applicants: int, efficiency: float, fairness_ratio: float = 1.0) -> conservation.Point:
    same = {"seed": 1, "tenants": 9, "time_us": 1.0, "messages": 1, "rounds": 6, "granted": [1.0] * 3, "scarce": 0}
    judged = {"efficiency": efficiency, "deviation": 0.1, "speedup": 200.0, "fairness_ratio": fairness_ratio}
    judged["speedup_exact"] = 0.3
    return conservation.Point(algorithm=algorithm, applicants=applicants, without_room=3, **same, **judged)  # type: ignore[arg-type]


def _shared_figures(level: list[conservation.Point]) -> dict[str, Figure]:
    others = [_shared(one, 10, 1.0) for one in ("all", "cdrf-exact", conservation.MORE_ROUNDS)]
    return {figure.name: figure for figure in conservation_goals.conservation([*level, *others])}


def test_many_easy_instances_do_not_hide_the_hard_ones() -> None:
    easy = [_shared("level", count, 1.0) for count in (10, 30, 50) for _ in range(9)]
    figures = _shared_figures([*easy, *[_shared("level", 150, part) for part in (0.98, 0.97, 1.0)]])
    assert (figures["leveldrf_efficiency"].value, figures["leveldrf_efficiency"].met) == (0.98, False)
    assert figures["tenants_without_room_to_return"].value == 3
    assert figures["leveldrf_rounds"].met is False


def test_an_algorithm_that_gives_out_nothing_is_not_fair() -> None:
    figures = _shared_figures([_shared("level", 10, 0.01, fairness_ratio=0.0)])
    assert figures["leveldrf_fairness_ratio"].met is None
    assert _shared_figures([_shared("level", 10, 1.0, fairness_ratio=1.0)])["leveldrf_fairness_ratio"].met is True


def test_the_papers_claims_are_judged_by_figures_of_both_regimes() -> None:
    figures = [
        Figure("alldrf_testbed_efficiency", 0.9, "ratio", 0.95, True),
        Figure("alldrf_efficiency_bounded", 0.96, "ratio", 0.95, True),
        Figure("placement_testbed_allocated_ratio_online", 0.95, "ratio", 0.98, True),
    ]
    table = page.claims(figures)
    assert "| `alldrf_testbed_efficiency` 0.9: **MISSED** | `alldrf_efficiency_bounded` 0.96: met |" in table
    assert "`placement_testbed_allocated_ratio_online` 0.95: **MISSED**" in table
    assert "| **no figure** |" in table, "a figure that was renamed does not just vanish"


def test_only_proven_optima_are_called_so() -> None:
    rows = [
        {"servers": 4, "proven": True, "found": 0.8, "bound": 0.8, "offline": 0.8, "online": 0.4, "offline_filo": 0.6},
        {"servers": 4, "proven": False, "found": 0.5, "bound": 1.0, "offline": 0.5, "online": 0.5, "offline_filo": 0.5},
    ]
    figures = {figure.name: figure.value for figure in placement_goals.beside_optimum(rows)}
    assert figures["placement_vs_optimal_ratio"] == pytest.approx(1.0)
    assert figures["placement_vs_optimal_ratio_online"] == pytest.approx(0.5)
    assert figures["placement_vs_bound_ratio"] == pytest.approx(0.75)
    met = {figure.name: figure.met for figure in placement_goals.beside_optimum(rows)}
    assert (met["placement_vs_optimal_ratio"], met["placement_vs_optimal_ratio_online"]) == (True, False)


def test_the_scarce_resource_is_the_one_that_applicants_want_the_largest_part_of() -> None:
    # The largest part is wanted of the second resource, the largest amount of the first.
    made = {
        "servers": [{"id": f"s{n}", "capacity": [1_000.0, 2.0, 5.0]} for n in range(2)],
        "applicants": [
            {"id": "a", "sla_per_s": 1, "replicas": [[900.0, 1.0, 1.0], [10.0, 3.0, 1.0]]},
            {"id": "b", "sla_per_s": 1, "replicas": [[500.0, 1.0, 4.0]]},
        ],
    }
    assert most_wanted(made) == 1
    made["applicants"].append({"id": "c", "sla_per_s": 1, "replicas": [[0.0, 0.0, 9.0]]})  # type: ignore[attr-defined]
    assert most_wanted(made) == 2


@needs_tool
def test_the_scarce_resource_of_tenants_is_what_they_hold_the_largest_part_of() -> None:
    tenant = {"placement": ["s"], "request": [[1.0, 4.0, 0.0]], "reserved_per_s": 10}
    shared = {"servers": [], "tenants": [{"id": "a", **tenant, "extra": "all"}, {"id": "b", **tenant}]}
    assert most_wanted_more(shared, [10.0, 100.0, 1.0]) == 0
    assert most_wanted_more(shared, [100.0, 100.0, 1.0]) == 1
    shared["tenants"][0]["request"] = [[0.0, 0.0, 2.0]]
    assert most_wanted_more(shared, [0.0, 100.0, 1.0]) == 2


def test_nothing_is_published_from_a_work_tree_with_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "changes", lambda: " M loadtest/papers/quorate_papers/goals.py")
    assert program.main(["--only", "fig3"]) == 1
    assert program.named_commit() == program.commit()
