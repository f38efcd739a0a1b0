"""Medians, names of figures, and what happens to disturbed cells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from quorate_peers.cells import CELLS, Cell
from quorate_peers.goals import judged
from quorate_peers.measure import Measured, MeasureFailed, of_window, run_client
from quorate_peers.peers import PEERS
from quorate_peers.processor import ProcessorTime
from quorate_peers.report import publish, table
from quorate_peers.results import Results


def measured(per_s: float, others_share: float = 0.0) -> Measured:
    return Measured(1000, per_s, 100, 200, 1.5, 0.5, others_share)


def start(per_s: float, others_share: float = 0.0) -> dict[Cell, Measured]:
    return dict.fromkeys(CELLS, measured(per_s, others_share))


def test_the_median_counts_and_a_disturbed_cell_is_marked(tmp_path: Path) -> None:
    results = Results()
    for per_s in (1000.0, 9000.0, 3000.0):
        results.add("quorate", "mem", start(per_s))
    results.add("nats", "mem", start(500.0, others_share=0.2))
    printed = table(results, "mem")
    assert "3,000/s" in printed
    assert "500/s · 100/200 µs · 1.5 + 0.5 s (disturbed)" in printed
    page = publish(results, tmp_path)
    lines = [json.loads(line) for line in page.with_suffix(".jsonl").read_text().splitlines()]
    by_name = {line["name"]: line for line in lines}
    assert len(by_name) == len(lines), "each figure once"
    assert by_name["append_64b_mem_per_s"]["value"] == 3000.0
    assert by_name["nats_append_64b_mem_p99_us"]["unit"] == "µs"
    assert all(line["command"] and line["commit"] and line["machine"] for line in lines)


def test_goals_are_judged_by_the_best_peer_of_the_run() -> None:
    results = Results()
    results.add("quorate", "mem", start(3000.0))
    for peer, per_s in (("nats", 1000.0), ("raft", 2000.0)):
        results.add(peer, "mem", start(per_s))
    figures = {figure.name: figure for figure in judged(results)}
    rate = figures["append_64b_mem_per_s_over_best_peer_ratio"]
    assert (rate.value, rate.goal, rate.met) == (1.5, 2, False)
    assert "raft" in rate.note
    assert figures["append_16k_mem_per_s_over_best_peer_ratio"].met
    assert figures["append_64b_mem_cpu_s_per_m"].met is False
    assert figures["append_1k_mem_cpu_s_per_m"].met
    assert figures["append_64b_mem_out1_p50_us_over_best_peer_ratio"].value == 1.0
    assert not any("sync" in name for name in figures), "what was not measured is not judged"


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    kept = tmp_path / "rounds.jsonl"
    Results(kept).add("nats", "sync", start(500.0))
    again = Results(kept)
    assert (again.rounds("nats", "sync"), again.rounds("nats", "mem")) == (1, 0)
    again.add("nats", "sync", start(1500.0))
    assert Results(kept).median("nats", "sync", CELLS[0], "per_s") == 1000.0


def test_names_of_figures() -> None:
    assert Cell("16k", 16384, 128).figure("sync", "cpu_s_per_m") == "append_16k_sync_cpu_s_per_m"
    assert Cell("64b", 64, 1).figure("mem", "p50_us") == "append_64b_mem_out1_p50_us"


def test_every_peer_says_what_its_modes_mean() -> None:
    for peer in PEERS.values():
        assert set(peer.modes) == {"mem", "sync"}, peer


def test_processor_time_is_taken_over_the_window() -> None:
    end = {"acked": 2_000_000, "window_s": 5.0, "p50_us": 10, "p99_us": 20}
    cell = of_window(end, ProcessorTime(servers_s=4.0, client_s=1.0, machine_s=5.0))
    assert (cell.per_s, cell.servers_cpu_s_per_m, cell.others_share) == (400_000.0, 2.0, 0.0)
    with pytest.raises(MeasureFailed, match="nothing was acknowledged"):
        of_window({**end, "acked": 0}, ProcessorTime(0, 0, 0))


def test_a_client_is_followed_and_its_last_words_are_told() -> None:
    ended = '{"event":"end","acked":5,"window_s":0.5,"p50_us":1,"p99_us":2}'
    script = f"""echo noise; echo '{{"event":"begin"}}'; echo '{ended}'"""
    assert run_client(["sh", "-c", script], [], 1).per_s == 10.0
    with pytest.raises(MeasureFailed, match="no such host"):
        run_client(["sh", "-c", "echo no such host >&2; exit 3"], [], 1)
