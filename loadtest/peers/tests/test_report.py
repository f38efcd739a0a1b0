"""Medians, names of figures, verdicts, and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from quorate_harness.cells import ALONE, CELL_16K, CELL_64B, CELLS, Mode
from quorate_peers.goals import judged
from quorate_peers.measure import Measured
from quorate_peers.peers import PEERS
from quorate_peers.report import beside_baseline, publish, table
from quorate_peers.results import Results


def measured(per_s: float, others_share: float = 0.0) -> Measured:
    return Measured(1000, per_s, 100, 200, 1.5, 0.5, others_share)


def add_start(results: Results, peer: str, mode: Mode, per_s: float, others_share: float = 0.0) -> None:
    """All cells of one start."""
    for cell in CELLS:
        if cell.mode == mode:
            results.add(peer, cell, measured(per_s, others_share))


def test_the_median_counts_and_a_disturbed_cell_is_marked(tmp_path: Path) -> None:
    results = Results()
    for per_s in (1000.0, 9000.0, 3000.0):
        add_start(results, "quorate", "mem", per_s)
    add_start(results, "nats", "mem", 500.0, others_share=0.2)
    printed = table(results, "mem")
    assert "3,000/s" in printed
    assert "500/s · 100/200 µs · 1.5 + 0.5 s · 20.0% *disturbed*" in printed
    assert printed.count("disturbed") == 4, "the four of the one peer"
    page = publish(results, tmp_path, "abc1234", ["etcd 1k_mem: 2 of 3 repetitions"])
    lines = [json.loads(line) for line in page.with_suffix(".jsonl").read_text().splitlines()]
    by_name = {line["name"]: line for line in lines}
    assert len(by_name) == len(lines), "each figure once"
    assert by_name["append_64b_mem_per_s"]["value"] == 3000.0
    assert by_name["nats_append_64b_mem_p99_us"]["unit"] == "µs"
    assert by_name["nats_append_64b_mem_p99_us"]["others_share"] == 0.2
    assert by_name["append_64b_mem_per_s"]["others_share"] == 0.0
    assert all(line["command"] and line["commit"] == "abc1234" and line["machine"] for line in lines)
    assert "etcd 1k_mem: 2 of 3 repetitions" in page.read_text()


def test_goals_are_judged_by_the_best_peer_of_the_run() -> None:
    results = Results()
    add_start(results, "quorate", "mem", 3000.0)
    for peer, per_s in (("nats", 1000.0), ("raft", 2000.0)):
        add_start(results, peer, "mem", per_s)
    figures = {goal.figure.name: goal.figure for goal in judged(results)}
    rate = figures["append_64b_mem_per_s_over_best_peer_ratio"]
    assert (rate.value, rate.goal, rate.met) == (1.5, 2, False)
    assert "raft" in rate.note
    assert figures["append_16k_mem_per_s_over_best_peer_ratio"].met
    assert figures["append_64b_mem_cpu_s_per_m"].met is False
    assert figures["append_1k_mem_cpu_s_per_m"].met
    assert figures["append_64b_mem_out1_p50_us_over_best_peer_ratio"].value == 1.0
    assert not any("sync" in name for name in figures), "unmeasured cells are not judged"
    assert not any("spin" in name for name in figures)


def test_spinning_is_judged_beside_nats_and_is_no_peer() -> None:
    results = Results()
    cell = ALONE["mem"]
    for peer, p50_us in (("quorate", 120), ("quorate-spin", 60), ("nats", 200), ("raft", 90)):
        results.add(peer, cell, replace(measured(1.0), p50_us=p50_us))
    figures = {goal.figure.name: goal.figure for goal in judged(results)}
    spinning = figures["append_64b_mem_out1_spin_p50_us_over_best_peer_ratio"]
    assert (spinning.value, spinning.goal, spinning.met) == (0.3, 0.25, False)
    assert figures["append_64b_mem_out1_p50_us_over_best_peer_ratio"].value == 0.6


def test_the_spinning_figures_have_names_of_their_own(tmp_path: Path) -> None:
    results = Results()
    for cell in ALONE.values():
        results.add("quorate-spin", cell, measured(1.0))
    names = {json.loads(line)["name"] for line in _lines(publish(results, tmp_path, "abc", []))}
    assert names == {"append_64b_mem_out1_spin_p50_us", "append_64b_sync_out1_spin_p50_us"}


def _lines(page: Path) -> list[str]:
    return page.with_suffix(".jsonl").read_text().splitlines()


def test_a_verdict_on_a_disturbed_cell_is_marked(tmp_path: Path) -> None:
    results = Results()
    add_start(results, "quorate", "mem", 3000.0)
    add_start(results, "nats", "mem", 1000.0)
    assert not any(goal.is_disturbed for goal in judged(results))
    results.add("nats", CELL_64B["mem"], measured(1000.0, others_share=0.09))
    marked = {goal.figure.name for goal in judged(results) if goal.is_disturbed}
    assert marked == {"append_64b_mem_per_s_over_best_peer_ratio", "append_64b_mem_p99_us_over_best_peer_ratio"}
    assert "nats; DISTURBED: others used 9% of the machine" in publish(results, tmp_path, "abc", []).read_text()


def test_a_peer_far_from_its_baseline_is_marked() -> None:
    results = Results()
    results.add("aeron", CELL_64B["mem"], measured(452e3))
    results.add("raft", CELL_16K["mem"], measured(27e3))
    results.add("nats", ALONE["mem"], replace(measured(1.0), p50_us=410))
    results.add("zookeeper", ALONE["mem"], measured(1.0))
    printed = beside_baseline(results)
    rows = {line.split(" | ")[0].strip("| "): line for line in printed.splitlines() if line.startswith("| ")}
    assert "| **0.50** |" in rows["Aeron Cluster 1.51.0 (fileSyncLevel 0 on tmpfs)"]
    assert "| 1.00 |" in rows["hashicorp/raft 1.8.0 (load inside the leader) (InmemStore)"]
    assert "| **2.00** |" in rows["NATS JetStream 2.15.2 (memory storage)"]
    assert rows["ZooKeeper 3.9.4 (as it comes)"].count("–") == 4
    assert beside_baseline(Results()) == ""


def test_a_stopped_run_is_resumed(tmp_path: Path) -> None:
    kept, cell = tmp_path / "rounds.jsonl", CELL_64B["sync"]
    Results(kept).add("nats", cell, measured(500.0))
    again = Results(kept)
    assert (again.repetitions("nats", cell), again.repetitions("nats", CELL_64B["mem"])) == (1, 0)
    again.add("nats", cell, measured(1500.0))
    assert Results(kept).median("nats", cell, "per_s") == 1000.0


def test_names_of_figures() -> None:
    assert CELL_16K["sync"].figure("cpu_s_per_m") == "append_16k_sync_cpu_s_per_m"
    assert ALONE["mem"].figure("p50_us") == "append_64b_mem_out1_p50_us"
    assert ALONE["sync"].figure("p50_us", is_spinning=True) == "append_64b_sync_out1_spin_p50_us"


def test_every_peer_describes_its_modes() -> None:
    for peer in PEERS.values():
        assert set(peer.modes) == {"mem", "sync"}, peer
