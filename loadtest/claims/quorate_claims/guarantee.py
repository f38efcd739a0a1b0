"""A project's guarantee, which its groups use in turn (Pulsar §3, §4.2).

Two groups of a project share a fixed guarantee beside their own rates. One wants all that it gets, then both do, then
the other alone. Another tenant keeps within its reservation on the same servers. At the end the coordinator stops.
`rounds.json` in the claim's folder is for `make figures ONLY=guarantee`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import uuid4

from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.quantiles import median, quantile
from quorate_harness.steady import Steady

ROUNDS = 10
SIZE_BYTES = 1_024
OWN_PER_S, SHARED_PER_S = 400, 4_000
GREEDY = ("--size", str(SIZE_BYTES), "--outstanding", "256", "--batch-entries-max", "16")
NEIGHBOUR_RESERVED_PER_S, NEIGHBOUR_PER_S = 1_000, 500
LATE_MS = 50.0  # for one in a hundred, as the SLA has it (`docs/reference/sla.md`)
POLL_S = 0.1
FOLLOWED_S = 0.5  # a rate is that of so long
NEAR = 0.1
STEADY_AFTER_S, PHASE_S = 2.0, 5.0
AWAY_S = 20.0
BURST_S = 1.0  # buckets hold so much
LOOKED_S = 2 * POLL_S  # acknowledgements of so long are seen together


@dataclass
class Sampled:
    """A load, and the entries that were acknowledged to it, by the time when that was looked up."""

    load: Steady
    acked: list[tuple[float, int]] = field(default_factory=list)

    def look(self) -> None:
        before = self.acked[-1][1] if self.acked else 0
        self.acked.append((time.monotonic(), before + self.load.mark("sample").acked))

    def rate_per_s(self, begin: float, end: float) -> float | None:
        within = [(at, count) for at, count in self.acked if begin <= at <= end]
        if len(within) < 2 or within[-1][0] - within[0][0] < (end - begin) / 2:
            return None
        (first, before), (last, after) = within[0], within[-1]
        return (after - before) / (last - first)


@dataclass
class Found:
    """`follows_s`: by kind of change. `errors`: of a group's rate, once it is steady. `bursts_s`: of both together."""

    follows_s: dict[str, list[float]] = field(default_factory=dict)
    errors: list[float] = field(default_factory=list)
    bursts_s: list[float] = field(default_factory=list)
    neighbour_p99s_ms: list[float] = field(default_factory=list)
    neighbour_missed: int = 0
    away: float = 0.0
    rounds: list[dict[str, Any]] = field(default_factory=list)


def measure(conditions: Conditions) -> list[Figure]:
    found, began = Found(), time.monotonic()
    with fleet(conditions.folder, conditions.display, 3) as servers:
        groups = [servers.create_group(name, "in_memory", OWN_PER_S, SIZE_BYTES) for name in ("first", "second")]
        neighbour = servers.admit_group(
            str(uuid4()), durability="in_memory", replication_degree=3, request_size_bytes=SIZE_BYTES,
            rate_per_s=NEIGHBOUR_RESERVED_PER_S, retention_bytes=64 << 20,
        )  # fmt: skip
        servers.wait_whole(*groups, neighbour)
        _share(servers, groups[0])
        flags = ("--size", str(SIZE_BYTES), "--rate", str(NEIGHBOUR_PER_S))
        with Steady(servers, "neighbour", [neighbour], *flags) as calm:
            for _ in range(2 if conditions.quick else ROUNDS):
                calm.mark("round")
                _round(servers, groups, found, conditions, began)
                _judge(calm, found)
            found.away = _without_coordinator(servers, groups)
    (conditions.folder / "rounds.json").write_text(json.dumps(found.rounds))
    return figures(found)


def figures(found: Found) -> list[Figure]:
    every = [each for seconds in found.follows_s.values() for each in seconds]
    kinds = "; ".join(f"{kind} {median(seconds):.2f} s" for kind, seconds in found.follows_s.items())
    rounds = len(found.neighbour_p99s_ms)
    about = f"until {FOLLOWED_S} s are within {NEAR:.0%} of what the policy gives; medians: {kinds}"
    beside = f"of {rounds} rounds, a p99 over {LATE_MS:.0f} ms or an entry that was not acknowledged"
    burst = "appends of both groups beyond the guarantee's rate and their own, in seconds of it; buckets hold one"
    worst = f"worst round; median {median(found.neighbour_p99s_ms):.1f} ms"
    return [
        Figure("guarantee_follows_p50_ms", median(every) * 1e3, "ms", 1_000, note=about),
        Figure("guarantee_follows_max_ms", max(every) * 1e3, "ms", 1_000, note=f"worst of {len(every)} changes"),
        Figure("guarantee_error", max(found.errors), "ratio", 0.05, note=f"worst of {len(found.errors)} steady rates"),
        Figure("guarantee_burst_s", max(found.bursts_s), "s", BURST_S + LOOKED_S, note=burst),
        Figure("guarantee_neighbour_p99_ms", max(found.neighbour_p99s_ms), "ms", LATE_MS, note=worst),
        Figure("guarantee_neighbour_violation_ratio", found.neighbour_missed / rounds, "ratio", 0, note=beside),
        Figure("guarantee_coordinator_away_ratio", found.away, "ratio", 0.95, True,
               f"rate of a group with the whole share in {AWAY_S:.0f} s without a coordinator, over the promised one"),
    ]  # fmt: skip


def _share(servers: Fleet, group: str) -> None:
    """A fixed guarantee of its project, in tokens of the declared size: nothing idle is lent beside it."""
    project = str(servers.group(group)["project_id"])
    path = f"/v1/projects/{project}/guarantee"
    with servers.coordinator_client(5) as client:
        view = client.get(path).json()
        shared = round(SHARED_PER_S * view["groups"][0]["request_milli_tokens"] / 1_000)
        terms = {"shared_tokens_per_s": shared, "max_tokens_per_s": view["own_tokens_per_s"] + shared}
        answer = client.put(path, json={"guarantee": terms, "revision": 1})
    if answer.status_code != 200:
        raise MeasurementFailed(f"the guarantee was not given: {answer.text[:300]}")


def _round(servers: Fleet, groups: list[str], found: Found, conditions: Conditions, began: float) -> None:
    whole, half = OWN_PER_S + SHARED_PER_S, OWN_PER_S + SHARED_PER_S / 2
    promised: list[tuple[float, tuple[float, float]]] = []

    def wanted(first_per_s: float, second_per_s: float) -> None:
        promised.append((time.monotonic() - began, (first_per_s, second_per_s)))

    with _greedy(servers, groups[0]) as first:
        wanted(whole, 0)
        _phase([(first, whole)], "first alone", found, conditions)
        with _greedy(servers, groups[1]) as second:
            wanted(half, half)
            _phase([(first, half), (second, half)], "both", found, conditions)
            first.load.end()
            wanted(0, whole)
            _phase([(second, whole)], "second alone", found, conditions)
            second.load.end()
            wanted(0, 0)
    acked = [[(at - began, count) for at, count in one.acked] for one in (first, second)]
    found.rounds.append({"acked": acked, "promised": promised})
    found.bursts_s.append(_burst_s([first, second], SHARED_PER_S + OWN_PER_S * len(groups)))


def _phase(expected: list[tuple[Sampled, float]], kind: str, found: Found, conditions: Conditions) -> None:
    """Who wants how much has just changed: the time until each has what is expected, and how exact it is then."""
    begun = time.monotonic()
    while time.monotonic() < begun + PHASE_S:
        for one, _ in expected:
            one.look()
        time.sleep(POLL_S)
    follows = max(_follows(one, rate, begun) for one, rate in expected)
    found.follows_s.setdefault(kind, []).append(follows)
    steady = [one.rate_per_s(begun + STEADY_AFTER_S, begun + PHASE_S) or 0.0 for one, _ in expected]
    found.errors += [abs(rate / asked - 1) for rate, (_, asked) in zip(steady, expected, strict=True)]
    rates = " and ".join(f"{rate:.0f}" for rate in steady)
    conditions.display.line(f"  {kind}: after {follows:.1f} s, then {rates} appends/s")


def _follows(one: Sampled, rate_per_s: float, begun: float) -> float:
    for at, _ in one.acked:
        rate = one.rate_per_s(at, at + FOLLOWED_S) if at >= begun else None
        if rate is not None and abs(rate / rate_per_s - 1) <= NEAR:
            return at - begun
    return PHASE_S


def _burst_s(loads: list[Sampled], rate_per_s: int) -> float:
    """The most that a bucket without a bottom would have to hold, so that all appends pass at this rate."""
    acked = sorted((at, count - before) for one in loads for (_, before), (at, count) in pairwise(one.acked))
    level, most, last = 0.0, 0.0, acked[0][0]
    for at, count in acked:
        level = max(0.0, level - rate_per_s * (at - last)) + count
        most, last = max(most, level), at
    return most / rate_per_s


def _judge(calm: Steady, found: Found) -> None:
    seen: Any = calm.mark("judged")
    p99_ms = seen.p99_us / 1e3
    found.neighbour_p99s_ms.append(p99_ms)
    found.neighbour_missed += p99_ms > LATE_MS or bool(seen.refused) or bool(seen.unknown)


def _without_coordinator(servers: Fleet, groups: list[str]) -> float:
    """Its rate over the promised one, in the worst of the seconds."""
    with _greedy(servers, groups[0]) as first:
        time.sleep(STEADY_AFTER_S)
        servers.stack.crash("coordinator")
        begun = time.monotonic()
        while time.monotonic() < begun + AWAY_S:
            first.look()
            time.sleep(POLL_S)
        servers.stack.restart("coordinator")
        first.load.end()
    seconds = [first.rate_per_s(begun + at, begun + at + 1) or 0.0 for at in range(int(AWAY_S) - 1)]
    return quantile(seconds, 0) / (OWN_PER_S + SHARED_PER_S)


@contextmanager
def _greedy(servers: Fleet, group: str) -> Iterator[Sampled]:
    with Steady(servers, group[:8], [group], *GREEDY) as load:
        yield Sampled(load)
