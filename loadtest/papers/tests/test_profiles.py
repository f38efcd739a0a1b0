"""Demands by a cost profile are those of `quorate-planner`; the profile that is used, and its description."""

import json
from pathlib import Path
from typing import Any

import pytest

from quorate_papers import alloc, profiles, tool
from quorate_papers.instances import applicants, servers, vectors_of

needs_tool = pytest.mark.skipif(not tool.BINARY.exists(), reason="`make rust` builds quorate-planner")


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


@needs_tool
def test_demands_follow_roles_sizes_and_durability() -> None:
    known = profiles.chosen()
    assert known.amounts(_sla("in_memory", 3, 64, 1_000)) == [
        [1_500_000, 1_000 * (2 * 96 + 2 * 8), 0],
        [1_200_000, 1_000 * 2 * 96, 0],
        [1_200_000, 1_000 * (96 + 8), 0],
    ]
    assert known.amounts(_sla("persistent", 1, 64, 1_000)) == [[1_950_000, 1_000 * (96 + 8), 2_000_000]]
    assert known.demands(_sla("persistent", 1, 64, 1_000)) == [[0.001_95, 104_000.0, 2_000.0]]
    assert known.shard_peak_per_s({**_sla("in_memory", 3, 64, 1), "rate_per_s": 10**8}) == 533_333
    assert [known.operations(_sla("persistent", 3, size, 9)) for size in (8_192, 8_193, 1 << 20)] == [2, 4, 256]
    assert known.operations(_sla("in_memory", 3, 64, 9)) == 0


@needs_tool
def test_a_profile_that_is_no_file_is_charged_by() -> None:
    known = profiles.Profile(Path("none"), _with_batches())
    sla = _sla("in_memory", 3, 64, 100_000)
    alone = known.amounts(sla)[0][0] - profiles.chosen().amounts(sla)[0][0]
    assert alone == 1_500 * 1_000, "a thousand come alone, each without three quarters of a batch"


@needs_tool
def test_many_slas_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    run = tool.run

    def counted(arguments: list[str], profile: Path | None, question: dict[str, Any]) -> dict[str, Any]:
        asked.append(len(question["slas"]))
        return run(arguments, profile, question)

    monkeypatch.setattr(tool, "run", counted)
    monkeypatch.setattr(profiles, "ASKED_AT_ONCE", 40)
    made = applicants(3, 30)
    assert asked == [40, 20], "durabilities, degrees and sizes"
    assert vectors_of(made) == vectors_of(made)
    assert asked == [40, 20, 30]


def test_a_profile_is_described_with_its_origin() -> None:
    about = profiles.chosen().about()
    assert profiles.described(about) == "`2026-11-provisional-1`, **an estimate**"
    assert "own cannot be used (profile: format: no), **an" in profiles.described(about, "profile: format: no")
    measured = {"version": "m", "provisional": False, "machine": {"cores": 2, "cpu": "c"}, "servers_version": "0.1.0"}
    assert profiles.described(measured) == "`m`, measured on 2 × c, servers 0.1.0"


def _choose(read: dict[str, Any]) -> profiles.Profile:
    profiles.LOCAL.write_text(json.dumps(read))
    profiles.chosen.cache_clear()
    return profiles.chosen()


@needs_tool
def test_a_measured_profile_is_used_where_it_is_valid() -> None:
    assert _choose(_with_batches()).version == "with batches"
    refused = _choose({**_with_batches(), "format": 5})
    assert (refused.path, refused.version) == (profiles.DEFAULT, "2026-11-provisional-1")
    assert "format" in str(refused.instead_of)


@needs_tool
@pytest.mark.parametrize("has_batches", [False, True])
def test_demands_are_what_a_placement_takes(has_batches: bool) -> None:
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
