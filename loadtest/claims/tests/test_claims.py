"""Conclusions of the claims from samples. Measuring needs servers, and is `make claims`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate_claims import catchup, failover, hung, limits, relief, restores, spread_reads, stopped, syncs
from quorate_harness.fleet import MeasurementFailed
from quorate_harness.quantiles import median, quantile
from quorate_harness.steady import Window

WINDOW = Window("trial", 0, 1_000_000, 20_000, 20_000.0, 900, 4_000, 9_000, (100, 600), 50, [], {}, {})


def test_of_thirty_trials_p99_is_the_worst() -> None:
    assert quantile([float(n) for n in range(30, 0, -1)], 0.99) == 30
    assert quantile([float(n) for n in range(200)], 0.99) == 197
    assert (median([3, 1, 2]), median([4, 1, 2, 3])) == (2, 2.5)


def test_a_gap_is_split_where_others_saw_something_happen() -> None:
    links: list[tuple[int, int | None]] = [(1_000_500, None), (1_360_000, 7)]
    window = replace(WINDOW, gap=(999_000, 1_362_000), links=links)
    trial = failover.split("persistent", 1_000_000, 1_330_000, 1_332_000, window)
    assert trial == failover.Trial("persistent", 363, 330, 2, 28, 2)
    unseen = failover.split("persistent", 1_000_000, None, 1_332_000, window)
    assert (unseen.gap_ms, unseen.detected_ms, unseen.adopted_ms, unseen.attached_ms) == (363, None, None, 28)


def test_the_neighbour_is_judged_by_medians() -> None:
    slowed = replace(WINDOW, acked_per_s=18_000, p99_us=9_000)
    pairs = [catchup.Pair(WINDOW, WINDOW, 10), catchup.Pair(WINDOW, slowed, 20), catchup.Pair(WINDOW, slowed, 40)]
    throughput, p99, seconds = catchup.figures(pairs, 1_000_000_000)
    assert (throughput.value, throughput.met, p99.value, p99.met, seconds.value) == (0.9, False, 2.25, False, 20)


def test_syncs_in_series_show() -> None:
    def p50s(serial: int) -> dict[syncs.Cell, float]:
        found: dict[syncs.Cell, float] = {}
        for degree in (1, 3, 5):
            after_each_other = degree if serial else 1
            found["in_memory", degree] = 20 * degree
            found["persistent", degree] = found["in_memory", degree] + 300 * after_each_other
            found["slow", degree] = found["persistent", degree] + 5_000 * after_each_other
            found["bare", degree] = 100 + 10 * degree
        return found

    parallel = {figure.name: figure for figure in syncs.figures(p50s(serial=0))}
    assert (parallel["syncs_in_series_degree3"].value, parallel["syncs_in_series_degree3"].met) == (1, True)
    assert parallel["sync_cost_degree3_over_degree1_ratio"].value == 1
    assert parallel["bare_syncs_5_at_once_over_1_ratio"].value == 150 / 110
    serial = {figure.name: figure for figure in syncs.figures(p50s(serial=1))}
    assert serial["sync_cost_degree5_over_degree1_ratio"].value == 5
    assert [(serial[f"syncs_in_series_degree{n}"].value, serial[f"syncs_in_series_degree{n}"].met) for n in (3, 5)] == [
        (3, False),
        (5, False),
    ]
    with pytest.raises(MeasurementFailed, match="does not sync"):
        syncs.figures(dict.fromkeys(p50s(0), 10.0))


def test_the_memory_bound_follows_from_the_limits() -> None:
    bounds = limits.limits()
    assert (bounds["UNCOMMITTED_BYTES_MAX"], bounds["BATCH_ENTRIES_MAX"]) == (32 << 20, 65_536)
    more = stopped.bound_bytes(50 << 20, 4) - stopped.bound_bytes(50 << 20, 3)
    assert more == bounds["BATCH_BYTES_MAX"]
    assert stopped.bound_bytes(50 << 20, 0) > (50 << 20) + stopped.RETENTION_BYTES + 2 * bounds["UNCOMMITTED_BYTES_MAX"]


def test_a_hang_is_judged_by_its_worst_and_by_every_wrong_eviction() -> None:
    sound = [hung.Trial(degree, groups, 2.0 + n / 100, n == 0, ()) for degree, groups in hung.SHAPES for n in range(13)]
    p99, median_s, wrong = hung.figures(sound)
    assert (p99.value, p99.met, wrong.value, wrong.met) == (2.12, True, 0, True)
    assert median_s.value == 2.06
    bad = [*sound[:-1], hung.Trial(3, 30, 3.1, False, ("s2", "s3"))]
    p99, _, wrong = hung.figures(bad)
    assert (p99.value, p99.met, wrong.value, wrong.met) == (3.1, False, 2, False)


def test_relief_ends_with_the_last_append_that_did_not_flow() -> None:
    (figure,) = relief.figures(500, 8.5, 6.2)
    assert (figure.name, figure.value, figure.met) == ("server_relief_s_500_groups", 8.5, True)
    assert relief.figures(500, 10.5, 6.2)[0].met is False


def test_epochs_are_read_from_a_log_and_a_torn_record_is_none() -> None:
    def record(payload: str) -> bytes:
        return b"QREC" + len(payload).to_bytes(4, "little") + b"\xff\x01\x02\x03" + payload.encode()

    issued = '{"group_id":"g","epoch":%d,"digest":7}'
    batch = '{"commands":[{"at_ms":1,"command":{"command":"admit"},"issued":[' + issued % 1 + "," + issued % 2 + "]}]}"
    older = '{"commands":[{"at_ms":1,"command":{"command":"admit"}}]}'
    log = b"QRTCLOG\0" + bytes(8) + record(older) + record(batch) + record(batch)[:-9]
    assert [found["epoch"] for found in restores.issued_in(log)] == [1, 2]


def test_the_ratio_of_reads_is_the_median_of_pairs_of_runs() -> None:
    def reads(*p99s_ms: float) -> list[spread_reads.Reads]:
        return [spread_reads.Reads(1.0, p99_ms, 100 * p99_ms) for p99_ms in p99s_ms]

    found = {spread_reads.IN_TURN: reads(10, 20, 10), spread_reads.BY_WINDOWS: reads(4, 4, 9)}
    ratio, throughput = spread_reads.figures(found)
    assert (ratio.name, ratio.value, ratio.met) == ("read_selection_p99_ratio", 0.4, True)
    assert throughput.value == 0.4
    turn = spread_reads.InTurn()
    assert [turn.choose(0.0, ["c", "a", "b"]) for _ in range(4)] == ["b", "c", "a", "b"]
