"""The arithmetic of figures. The run itself needs a stack."""

from __future__ import annotations

import json

import pytest

from quorate_api.telemetry.records import read
from quorate_scale import cli, ingest, queries
from quorate_scale.close import Closed
from quorate_scale.ingest import Ingested
from quorate_scale.queries import Waits
from quorate_scale.sizes import PACKED_HOURS, UNPACKED_MINUTES, Sizes
from quorate_scale.world import MONTHS


def test_growth_is_the_slope_of_the_logarithms() -> None:
    assert cli.exponent([10, 100, 1_000], [5.0, 5.0, 5.0]) == pytest.approx(0.0)
    assert cli.exponent([10, 100, 1_000], [1.0, 10.0, 100.0]) == pytest.approx(1.0)
    assert cli.exponent([10, 1_000], [1.0, 10.0]) == pytest.approx(0.5)


def test_one_of_a_hundred_requests_may_take_longer() -> None:
    assert queries.p99([1.0] * 99 + [50.0]) == 1.0
    assert queries.p99([1.0] * 98 + [50.0] * 2) == 50.0


def test_a_core_ingests_what_worker_and_database_take() -> None:
    assert Ingested(records=1_000, worker_cpu_s=0.5, postgres_cpu_s=0.5, elapsed_s=9.0).groups_per_core == 60_000


def test_a_groups_bytes_are_its_sums_and_the_minutes_that_are_kept() -> None:
    assert Sizes(10, 1_300, 0.0, 0.0, 1.0).per_group_month == pytest.approx(130 / MONTHS)
    assert Sizes(10, 0, 0.0, 100.0, 1.0).per_group_month == pytest.approx(100 * PACKED_HOURS / MONTHS)
    assert Sizes(10, 0, 10.0, 0.0, 1.0).per_group_month == pytest.approx(10 * 3 * UNPACKED_MINUTES / MONTHS)


def test_an_organization_without_its_invoice_misses_the_goal() -> None:
    step = cli.Step(1_000, Waits([1.0], [1.0], [1.0]), Sizes(1, 1, 1.0, 1.0, 1.0), Ingested(10, 1.0, 1.0, 1.0))
    twice = cli.Step(2_000, Waits([2.0], [1.0], [4.0]), Sizes(1, 2, 1.0, 1.0, 1.0), Ingested(20, 2.0, 2.0, 1.0))
    figures = {figure.name: figure for figure in cli.figures_of([step, twice], Closed(100, 5.0, 33, 1))}
    assert figures["month_close_off"].met is False
    assert figures["month_close_s"].met is True
    assert figures["usage_query_growth_exponent"].value == 1.0
    assert figures["invoice_current_growth_exponent"].value == 2.0


def test_records_follow_the_contract() -> None:
    groups = [f"00000000-0000-7000-8000-{number:012}" for number in range(300)]
    entries = list(ingest._entries(groups, "of-300"))
    assert sum(count for _, count in entries) == len(groups) * ingest.MINUTES
    for text, count in entries:
        found, rejected = read("0-1", text)
        assert (len(found), rejected) == (count, [])
        assert count <= ingest.RECORDS_PER_ENTRY
        assert json.loads(text)["v"] == 1
