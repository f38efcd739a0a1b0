from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorate_local.figures import Figure
from quorate_scenarios.bench.cells import CELLS, COMPARED
from quorate_scenarios.bench.driver import Measured
from quorate_scenarios.bench.verdict import Found, figures

WINDOW = Measured(per_s=2e6, p50_us=60, p99_us=900, cpu=0.5, client_cpu=0.1, batch_entries=256, others_share=0.01)


def _found(**changed: Any) -> Found:
    found = Found(isolation={CELLS[0]: [1.03, 1.00, 1.01], CELLS[4]: [1.0, 0.99, 1.0]})
    for cell in CELLS:
        found.plain[cell] = [replace(WINDOW, cpu=cpu, **changed) for cpu in (0.5, 0.9, 0.6)]
    for cell in COMPARED:
        found.tls[cell] = [replace(WINDOW, cpu=cpu, p50_us=90) for cpu in (0.75, 0.9, 0.6)]
        found.floor[cell] = [{"p50_us": 30, "servers_cpu_s_per_m": 0.25}] * 3
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


def test_what_disturbed_is_told() -> None:
    assert _found(others_share=0.2).disturbed() == 0.2


def test_isolation_is_judged_by_the_size_where_it_is_dearest() -> None:
    found = _found()
    found.isolation[CELLS[5]] = [1.05, 1.03, 1.04]
    kept = _by_name(found)
    assert (kept["isolation_cpu_overhead_ratio"].value, kept["isolation_cpu_overhead_ratio"].met) == (1.04, False)
    assert "16 KB synced" in kept["isolation_cpu_overhead_ratio"].note
