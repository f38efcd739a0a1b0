"""Promises of SLAs: latency by class and size, availability by failure domains, refusals of what is not kept."""

from math import inf
from typing import Any
from uuid import UUID

import pytest

from quorate_api.outside.verdict import EVERYTHING_REACHED
from quorate_api.promises.latency import BOUNDS_US, latency_p99_us
from quorate_api.sla.calculator import report
from quorate_api.sla.promise import Promise
from quorate_api.sla.targets import AVAILABILITY_APART
from quorate_api.telemetry.histogram import bucket_of
from quorate_api.telemetry.windows import Window
from support.coordinator import FakeCoordinator
from support.customer import SLA, Customer, problem

START_S = 1_700_000_040


def sla(latency: str = "standard", durability: str = "in_memory", size: int = 64) -> dict[str, Any]:
    return {"latency": latency, "durability": durability, "request_size_bytes": size}


@pytest.mark.parametrize(
    ("size", "bound_us"),
    [(1, 2_000), (64, 2_000), (544, 6_000), (1_024, 10_000), (16_384, 25_000), (1_048_576, 100_000)],
)
def test_bounds_rise_with_the_size(size: int, bound_us: int) -> None:
    assert latency_p99_us(sla(size=size)) == bound_us


def test_the_low_class_promises_less_at_every_size_and_no_class_falls() -> None:
    for durability in ("in_memory", "persistent"):
        for size in (1, 64, 65, 500, 1_024, 5_000, 16_384, 100_000, 1_048_576):
            assert latency_p99_us(sla("low", durability, size)) < latency_p99_us(sla("standard", durability, size))
    for points in BOUNDS_US.values():
        assert list(points) == sorted(points)
        assert [bound for _, bound in points] == sorted(bound for _, bound in points)


def test_groups_of_earlier_versions_have_the_standard_class() -> None:
    earlier = sla()
    del earlier["latency"]
    assert latency_p99_us(earlier) == 2_000


def test_each_minute_is_judged_by_the_bound_of_its_time() -> None:
    """The class changed within the second minute: the laxer bound holds in it."""
    promise = Promise.of(999_500, [(START_S + 90, sla("standard")), (inf, sla("low"))])
    assert [promise.latency_us_at(START_S + 60 * minute) for minute in range(3)] == [2_000, 2_000, 1_000]
    windows = [
        Window("g", 1, "a", 1, START_S + 60 * minute, "head", active_ms=60_000, latency_us={bucket_of(1_500): 9})
        for minute in range(3)
    ]
    found = report(windows, promise, START_S * 1_000, (START_S + 180) * 1_000, EVERYTHING_REACHED)
    assert [(each.start_s, each.target_us) for each in found.bad_minutes if not each.is_timely] == [
        (START_S + 120, 1_000)
    ]
    assert [each.reason for each in found.incidents if each.clause == "latency"] == [
        "p99 of commit latency was up to 1.5 ms, above 1.0 ms."
    ]


async def test_replicas_in_three_failure_domains_are_promised_more(
    alice: Customer, coordinator: FakeCoordinator
) -> None:
    ordinary = await alice.create_group("near")
    assert ordinary["promise"] == {"availability": 0.9995, "latency_p99_us": latency_p99_us(ordinary["sla"])}
    coordinator.failure_domains = ["a", "b", "a"]
    assert (await alice.post("/v1/quotes", SLA)).json()["promise"]["availability"] == 0.9995
    coordinator.failure_domains = ["a", "b", "c"]
    assert (await alice.post("/v1/quotes", SLA)).json()["promise"]["availability"] == 0.9999
    apart = await alice.create_group("apart")
    path = f"/v1/groups/{apart['id']}"
    assert (await alice.get(path))["promise"]["availability"] == 0.9999
    clause = (await alice.get(f"{path}/sla"))["clauses"][0]
    assert (clause["clause"], clause["target"]) == ("availability", 0.9999)
    placed = (await alice.get(f"{path}/placement"))["replicas"]
    assert [replica["failure_domain"] for replica in placed] == ["a", "b", "c"]
    # A replacement elsewhere changes no promise.
    for replica in coordinator.groups[UUID(apart["id"])]["replicas"]:
        replica["failure_domain"] = "a"
    answer = await alice.request("PATCH", path, json={"rate_per_s": 2_000})
    assert answer.json()["promise"]["availability"] == 0.9999
    moved = (await alice.get(f"{path}/placement"))["replicas"]
    assert {replica["failure_domain"] for replica in moved} == {"a"}


def test_three_domains_earn_a_credit_sooner() -> None:
    assert [AVAILABILITY_APART.credit_percent(ppm) for ppm in (999_900, 999_899, 998_999, 989_999, 949_999)] == [
        0, 10, 25, 50, 100,
    ]  # fmt: skip


async def test_a_class_that_the_fleet_does_not_keep_is_refused(alice: Customer, coordinator: FakeCoordinator) -> None:
    asked = SLA | {"latency": "low"}
    low_us, standard_us = (latency_p99_us(each) for each in (asked, SLA))
    unmeasured = (await alice.post("/v1/quotes", asked)).json()
    assert (unmeasured["admissible"], unmeasured["refusal"]["reason"]) == (False, "latency_not_kept")
    assert (await alice.post("/v1/quotes", SLA)).json()["admissible"], "the standard class needs no measurement"
    coordinator.commit_p99_us = low_us + 1
    refused = (await alice.post("/v1/quotes", asked)).json()["refusal"]
    assert refused["largest_sla_that_fits"]["latency"] == "standard"
    assert "Ask for the class standard." in refused["message"]
    answer = await alice.post(f"/v1/projects/{alice.project_id}/groups", {"name": "quick", **asked})
    assert problem(answer, 409, "admission_refused")["refusal"]["scarce_resource"] == "latency"
    coordinator.commit_p99_us = standard_us + 1
    refused = (await alice.post("/v1/quotes", SLA)).json()["refusal"]
    assert (refused["reason"], refused["largest_sla_that_fits"]) == ("latency_not_kept", None)
    coordinator.commit_p99_us = low_us
    group = await alice.create_group("quick", latency="low")
    assert group["promise"]["latency_p99_us"] == low_us
    back = (await alice.request("PATCH", f"/v1/groups/{group['id']}", json={"latency": "standard"})).json()
    assert (back["sla"]["latency"], back["promise"]["latency_p99_us"]) == ("standard", standard_us)
