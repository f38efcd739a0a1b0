"""Instances are the same everywhere and as the tool understands them; goals are judged; the solver is exact."""

import itertools
import json
from pathlib import Path
from statistics import fmean

import pytest

from quorate_paper import alloc, conservation, costs, figure7, goals, placement, program
from quorate_paper.instances import KINDS, applicants, demands, servers
from quorate_paper.solver import optimum

needs_tool = pytest.mark.skipif(not alloc.BINARY.exists(), reason="`make rust` builds quorate-alloc")


def _sla(rate: int, degree: int = 3) -> dict[str, object]:
    return {"durability": "in_memory", "replication_degree": degree, "request_size_bytes": 64, "rate_per_s": rate}


def test_a_seed_makes_one_instance() -> None:
    assert applicants(7, 20) == applicants(7, 20) != applicants(8, 20)
    assert applicants(7, 20)[:10] == applicants(7, 10)


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
    told = {"version": "v", "source": "a test", "servers_version": "0", "machine": {"cores": 2, "cpu": "c"}}
    error = {"median": 0.1, "worst": 0.2, "mixes": [{}]}
    cells = tmp_path / "cells.json"
    cells.write_text(json.dumps({**told, "error": error, "cells": [cell(*one) for one in series]}))
    points = costs.points(costs.read(cells))
    assert len(points) == 8
    assert {(point.cores, point.busiest, point.per_s) for point in points} == {(0.5, 0.25, 5e5)}
    assert {point.head_us for point in points} == {2.0, None}, "the median; two shards tell no roles apart"
    assert program.main(["--only", "fig3", "--cells", str(cells), "--publish", str(tmp_path)]) == 0
    assert "10.0%" in (tmp_path / "figure-3.md").read_text()
    assert (tmp_path / "figure-3.svg").stat().st_size > 0
    assert program.main(["--only", "fig3", "--cells", str(tmp_path / "none"), "--publish", str(tmp_path)]) == 1


@needs_tool
def test_demands_are_those_of_the_tool() -> None:
    for applicant in applicants(3, 40):
        alone = {"servers": servers(7), "applicants": [applicant]}
        answer = alloc.place(alone, "online")
        if not answer["placed"]:
            continue
        left = {server["id"]: server["left"] for server in answer["servers"]}
        for server, vector in zip(answer["placed"][0]["servers"], demands(applicant["sla"]), strict=True):
            taken = [full - rest for full, rest in zip(servers(1)[0]["capacity"], left[server], strict=True)]
            assert taken == pytest.approx(vector, rel=1e-3, abs=1e-3)


@needs_tool
def test_figures_of_a_small_run() -> None:
    found = conservation.points(range(1, 2), [10])
    assert {point.algorithm for point in found} == set(conservation.ALGORITHMS)
    assert all(point.efficiency <= 1.01 for point in found if point.algorithm in ("all", "level"))
    figures = {figure.name: figure for figure in goals.conservation(found)}
    assert figures["cdrf_exact_speedup"].met is True
    assert figures["alldrf_efficiency"].met is None
    for algorithm in placement.ALGORITHMS:
        point = placement._point("offline", algorithm, 30, range(1, 3))
        assert 0 < point.allocated <= 1
        assert point.used_servers == placement.SERVERS


@needs_tool
def test_placement_beyond_algorithm_1() -> None:
    rows = placement.kinds(range(50, 56), 150)
    assert {row["kind"] for row in rows} == set(KINDS)
    by_order = {order: [row for row in rows if row["order"] == order] for order in placement.ORDERS}
    for row in by_order["offline"]:
        assert row["shape"] > max(0.99, row["filo"]), row
    for row in by_order["online, as drawn"]:
        assert row["shape"] > row["filo"] + 0.005, row
    # In increasing order what is left is less than the next applicant: one kind may lose what another wins.
    assert fmean(row["shape"] - row["filo"] for row in by_order["online, increasing"]) > 0


@needs_tool
def test_speed_up_grows_with_the_fleet() -> None:
    small, large = conservation.by_fleet(range(1, 2), (10, 40))
    for algorithm in ("all", "level"):
        assert large["speedup"][algorithm] > 1.3 * small["speedup"][algorithm]


@needs_tool
def test_demands_that_end_reproduce_the_efficiencies_of_the_paper() -> None:
    rows = conservation.by_demand(range(1, 4), 150)
    modest = [row["efficiency"] for row in rows if row["demand"] == 0.25]
    assert all(one["head"] > 0.99 and one["all"] > 0.99 for one in modest)
    again = {figure.name: figure.value for figure in goals.bounded(rows)}
    assert 0.5 < again["headdrf_efficiency_bounded"] < again["alldrf_efficiency_bounded"] < 1


@needs_tool
def test_what_the_tool_refuses_is_said() -> None:
    with pytest.raises(alloc.Refused, match=r"servers\[0\]\.capacity"):
        alloc.place({"servers": [{"id": "s", "capacity": [1]}]}, "online")


def _sampled(tenant: str, phase: str, rates: list[float]) -> list[figure7.Sample]:
    """Windows of 100 ms."""
    return [figure7.Sample(tenant, phase, n / 10, (n + 1) / 10, rate, 5_000) for n, rate in enumerate(rates)]


def test_an_interval_below_the_sla_is_a_violation() -> None:
    sla = figure7.SLA_PER_S
    samples = _sampled("B", "C idles, A and B want more", [sla] * 5 + [0.5 * sla] * 5 + [1.5 * sla] * 5)
    samples += _sampled("C", "C idles, A and B want more", [0.1 * sla] * 10)
    assert figure7.violations(figure7.Seen(samples)) == (1, 5)
    assert figure7.violations(figure7.Seen(samples), "B floods") == (0, 0)


def test_a_victim_is_back_when_an_interval_begins_at_its_sla() -> None:
    sla = float(figure7.SLA_PER_S)
    assert figure7._back_s(_sampled("C", "x", [0.2 * sla, 0.2 * sla, *[sla] * 6])) == pytest.approx(0.2)
    assert figure7._back_s(_sampled("C", "x", [0.2 * sla] * 8)) > figure7.INTERVAL_S
