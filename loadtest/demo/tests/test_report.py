"""The report fails for every single thing that may not be, and its JSON has the documented keys."""

from dataclasses import replace
from typing import Any

import pytest

from quorate_demo.measure import Latency
from quorate_demo.report import GroupOutcome, Outcome
from quorate_demo.verdict import Verdict

VERDICT = Verdict(1000, 1000, 0, 0, 0, 0, 0)
GROUP = GroupOutcome(
    organization="stade-de-france",
    durability="persistent",
    writer="python",
    reader="typescript",
    was_head_killed=True,
    offered=1000,
    refused=0,
    unknown=0,
    verdict=VERDICT,
    usage_entries=1000,
    billed=1000,
    rate_per_s=20_000,
    latency=Latency(900, 80_000),
    latency_steady=Latency(800, 4_000),
    failover_gap_ms=900,
    sla={"clauses": [{"clause": "availability", "attained": 0.999}]},
    invoice_total_micros=1_234_567,
    currency="USD",
)
OUTCOME = Outcome(
    groups=[GROUP, replace(GROUP, organization="parc-des-princes", was_head_killed=False)],
    refusal={"reason": "insufficient_capacity", "message": "Not enough CPU."},
    killed_server="s2",
    server_memory_bytes={"s1": 90_000_000, "s2": 120_000_000},
    died=[],
    seconds=61.2,
    portal_url="http://127.0.0.1:1",
)


def with_group(**changes: Any) -> Outcome:
    return replace(OUTCOME, groups=[GROUP, replace(GROUP, **changes)])


def test_a_good_outcome_passes() -> None:
    assert OUTCOME.passed


@pytest.mark.parametrize(
    "bad",
    [
        replace(OUTCOME, refusal=None),
        replace(OUTCOME, refusal={}),
        replace(OUTCOME, died=["worker"]),
        replace(OUTCOME, server_memory_bytes={"s1": 300_000_000}),
        replace(OUTCOME, groups=[replace(GROUP, was_head_killed=False)]),
        with_group(offered=1001),
        with_group(verdict=replace(VERDICT, lost=1)),
        with_group(verdict=replace(VERDICT, duplicated=1)),
        with_group(verdict=replace(VERDICT, reordered=1)),
        with_group(verdict=replace(VERDICT, misplaced=1)),
        with_group(verdict=replace(VERDICT, corrupted=1)),
        with_group(verdict=replace(VERDICT, read_back=1001)),
        with_group(usage_entries=999),
        with_group(billed=1001),
        with_group(failover_gap_ms=3001),
        with_group(offered=0, verdict=Verdict(0, 0, 0, 0, 0, 0, 0), usage_entries=0, billed=0),
    ],
)
def test_each_fault_alone_fails_it(bad: Outcome) -> None:
    assert not bad.passed
    assert bad.to_json()["passed"] is False
    assert any(line.strip().startswith("FAILED") for line in bad.lines())


def test_the_json_has_sums_and_worst_values_on_top() -> None:
    found = OUTCOME.to_json()
    assert (found["acked"], found["billed"], found["lost"]) == (2000, 2000, 0)
    assert (found["append_p99_us"], found["failover_gap_ms"]) == (80_000, 900)
    assert found["invoice_total_micros"] == 2_469_134
    assert found["refusal"]["reason"] == "insufficient_capacity"
    assert set(found["sla"]) == {"stade-de-france", "parc-des-princes"}


def test_the_table_shows_money_and_entries() -> None:
    text = "\n".join(OUTCOME.lines())
    assert "1.234567 USD" in text
    assert "1,000" in text


def test_figures_are_of_the_worst_group_and_count_what_is_wrong() -> None:
    assert [figure.met for figure in OUTCOME.figures()] == [True] * 4
    unbilled = replace(GROUP, billed=990, failover_gap_ms=4_000, verdict=replace(VERDICT, lost=1, reordered=2))
    figures = {figure.name: figure for figure in replace(OUTCOME, groups=[GROUP, unbilled]).figures()}
    assert figures["demo_failover_gap_ms"].value == 4_000
    assert figures["demo_entries_lost_duplicated_reordered"].value == 3
    assert figures["demo_entries_billed_minus_acked"].value == 10
    assert figures["demo_entries_billed_minus_acked"].met is False
