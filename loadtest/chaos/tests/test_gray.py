from typing import Any

from quorate_chaos import gray
from quorate_chaos.faults import FAULTS
from quorate_chaos.trial import FALSE_ALARM


def run(fault: str, *gaps_ms: int) -> dict[str, Any]:
    return {"fault": fault, "trouble": [], "groups": [{"longest_gap_ms": gap_ms} for gap_ms in gaps_ms]}


def test_the_figure_is_of_the_worse_group_of_each_run() -> None:
    runs = [run("cut_link", 20, 900), run("one_way", 1_100, 30), run("one_way", 40, 50), run("full_disk")]
    found = {figure.name: figure for figure in gray.found(runs)}
    assert found["gray_gap_p99_ms"].value == 1_100
    assert found["gray_gap_p99_ms"].met
    assert found["gray_cut_link_gap_max_ms"].value == 900
    assert found["gray_one_way_gap_max_ms"].value == 1_100
    assert "gray_full_disk_gap_max_ms" not in found, "that run did not come to its end"


def test_false_alarms_are_counted_and_an_hour_of_stops_is_wanted() -> None:
    alarmed = {**run(gray.STOPS, 40), "trouble": [f"{FALSE_ALARM}: server_slow: s1", "Unready: something else"]}
    found = {figure.name: figure for figure in gray.found([alarmed])}
    assert "gray_gap_p99_ms" not in found
    assert (found["gray_false_alarms"].value, found["gray_false_alarms"].met) == (1, None)
    quiet = {**run(gray.STOPS, 40), "trouble": []}
    hour = {figure.name: figure for figure in gray.found([quiet] * 60)}
    assert hour["gray_false_alarms"].met
    assert hour["gray_short_stops_s"].value == gray.STOPS_S_LEAST


def test_a_percentile_is_one_of_the_values() -> None:
    values = list(range(1, 201))
    assert [gray.percentile(values, percent) for percent in (1, 50, 99, 100)] == [2, 100, 198, 200]
    assert gray.percentile([7], 99) == 7


def test_each_gray_failure_is_a_fault() -> None:
    assert {*gray.FAULTS, gray.STOPS} <= set(FAULTS)
