"""What a cost profile says of an SLA: the numbers are those of `services/crates/placement/src/profile_tests.rs`."""

import json
from pathlib import Path
from typing import Any

import pytest

from quorate_paper import alloc, profiles, tool
from quorate_paper.instances import applicants, servers

needs_tool = pytest.mark.skipif(not tool.BINARY.exists(), reason="`make rust` builds quorate-alloc")


def _sla(durability: str, degree: int, size: int, rate: int) -> dict[str, Any]:
    about = {"durability": durability, "replication_degree": degree}
    return {**about, "request_size_bytes": size, "rate_per_s": rate}


def _with_batches() -> dict[str, Any]:
    """The default, with what a batch costs itself: four entries share one."""
    read = profiles.read(profiles.DEFAULT).read
    read.update(format=3, version="with batches")
    for durability in ("in_memory", "persistent"):
        read["cpu"][durability]["batch_ns"] = {"head": 2_000, "follower": 1_600, "tail": 1_200}
    return read


def _profile(read: dict[str, Any]) -> profiles.Profile:
    return profiles.Profile(Path("none"), read)


def test_demands_follow_roles_sizes_and_durability() -> None:
    known = profiles.chosen()
    assert known.amounts(_sla("in_memory", 3, 64, 1_000)) == [
        [1_500_000, 1_000 * (2 * 96 + 2 * 8), 0],
        [1_200_000, 1_000 * 2 * 96, 0],
        [1_200_000, 1_000 * (96 + 8), 0],
    ]
    assert known.amounts(_sla("persistent", 1, 64, 1_000)) == [[1_950_000, 1_000 * (96 + 8), 2_000_000]]
    for size, operations in ((8_192, 2), (8_193, 4), (16_384, 4), (1 << 20, 256)):
        assert known.amounts(_sla("persistent", 3, size, 1))[2][2] == operations * 1_000
    # Interpolated between 64 and 256, beyond 32768, below 64.
    assert known.amounts(_sla("in_memory", 3, 164, 1_000))[0][0] == 1_600_000
    assert known.amounts(_sla("in_memory", 3, 132_768, 1))[0][0] == 134_204
    assert known.amounts(_sla("in_memory", 3, 1, 1))[0][0] == 1_500
    assert known.shard_peak_per_s(_sla("in_memory", 3, 64, 1)) == 533_333
    assert known.demands(_sla("persistent", 1, 64, 1_000)) == [[0.001_95, 104_000.0, 2_000.0]]


def test_the_busiest_thread_bounds_a_group_and_all_threads_are_charged() -> None:
    read = profiles.read(profiles.DEFAULT).read
    for role in ("head", "follower", "tail"):
        for point in read["cpu"]["in_memory"][role]:
            point["busiest_ns"] = point["cpu_ns"] // 2
    sla = _sla("in_memory", 3, 64, 1_000)
    assert _profile(read).amounts(sla) == profiles.chosen().amounts(sla)
    assert _profile(read).shard_peak_per_s(sla) == 1_066_666


@pytest.mark.parametrize("durability", ["in_memory", "persistent"])
def test_what_is_promised_is_in_full_batches_and_some_alone(durability: str) -> None:
    known = _profile(_with_batches())
    for rate, alone in ((1, 1), (1_000, 1_000), (100_000, 1_000)):
        sla = _sla(durability, 3, 64, rate)
        before, now = (of.amounts(sla) for of in (profiles.chosen(), known))
        # Three quarters of a batch's nanoseconds, headers and acknowledgements for each that comes alone.
        assert [one[0] - plain[0] for one, plain in zip(now, before, strict=True)] == [
            ns * alone for ns in (1_500, 1_200, 900)
        ]
        assert now[0][1] - before[0][1] == alone * (2 * 128 + 2 * 32) * 3 // 4
        assert [one[2] for one in now] == [one[2] for one in before]


def test_what_may_come_alone_is_taken_off_what_a_shard_carries() -> None:
    sla = _sla("in_memory", 3, 64, 100_000)
    assert _profile(_with_batches()).shard_peak_per_s(sla) == profiles.chosen().shard_peak_per_s(sla) - 1_000
    slow = _with_batches()
    slow["cpu"]["in_memory"]["batch_ns"]["tail"] = 1_000_000_000
    assert _profile(slow).shard_peak_per_s(sla) == 1


def test_where_a_profile_comes_from_is_told() -> None:
    about = profiles.chosen().about()
    assert profiles.told(about) == "`2026-11-provisional-1`, **an estimate**: nothing measured was there"
    assert "cannot be used (profile: format: no)" in profiles.told(about, "profile: format: no")
    measured = {"version": "m", "provisional": False, "machine": {"cores": 2, "cpu": "c"}, "servers_version": "0.1.0"}
    assert profiles.told(measured) == "`m`, measured on 2 × c, servers 0.1.0"


def _choose(read: dict[str, Any]) -> profiles.Profile:
    profiles.LOCAL.write_text(json.dumps(read))
    profiles.chosen.cache_clear()
    return profiles.chosen()


@needs_tool
def test_a_measured_profile_is_used_where_it_is_valid() -> None:
    assert _choose(_with_batches()).version == "with batches"
    refused = _choose({**_with_batches(), "format": 4})
    assert (refused.path, refused.version) == (profiles.DEFAULT, "2026-11-provisional-1")
    assert "format" in str(refused.instead_of)


@needs_tool
@pytest.mark.parametrize("has_batches", [False, True])
def test_demands_are_those_of_the_tool(has_batches: bool) -> None:
    known = _choose(_with_batches()) if has_batches else profiles.chosen()
    compared = 0
    for applicant in applicants(3, 40):
        alone = {"servers": servers(7), "applicants": [applicant]}
        answer = alloc.place(alone, "online")
        if not answer["placed"]:
            continue
        compared += 1
        left = {server["id"]: server["left"] for server in answer["servers"]}
        for server, vector in zip(answer["placed"][0]["servers"], known.demands(applicant["sla"]), strict=True):
            taken = [full - rest for full, rest in zip(servers(1)[0]["capacity"], left[server], strict=True)]
            assert taken == pytest.approx(vector, rel=1e-6, abs=1e-3)
    assert compared > 30


@needs_tool
@pytest.mark.parametrize("has_batches", [False, True])
@pytest.mark.parametrize(("durability", "size"), [("in_memory", 64), ("persistent", 700), ("persistent", 32_768)])
def test_a_shard_carries_what_the_tool_admits_and_no_more(has_batches: bool, durability: str, size: int) -> None:
    known = _choose(_with_batches()) if has_batches else profiles.chosen()
    sla = _sla(durability, 3, size, 1)
    sla["rate_per_s"] = known.shard_peak_per_s(sla)
    alloc.place({"servers": servers(3), "applicants": [{"id": "a", "sla": sla}]}, "online")
    sla["rate_per_s"] += 1
    with pytest.raises(tool.Refused, match="one shard carries at most"):
        alloc.place({"servers": servers(3), "applicants": [{"id": "a", "sla": sla}]}, "online")
