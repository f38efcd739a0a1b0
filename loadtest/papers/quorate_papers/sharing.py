"""Sharing unreserved amounts in fleets of a thousand servers: by one coordinator for all, and by Level-DRF.

A reference that shares no code with them judges both. All-DRF is run with a second round over what the first one left,
on fleets of the paper's size (Filo, Figure 6).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from quorate_harness.figures import Figure
from quorate_papers import alloc, placement, sharing_reference, tool
from quorate_papers.conservation import part_of
from quorate_papers.instances import OURS, capacity, conservation, most_wanted_more, reserved_per_s

TENANTS_OF_A_SERVER = 100
DEGREE = 3
SERVERS, LARGE = 1_000, 10_000
SEEDS = range(1, 4)
RESERVED_PART = 0.7  # admission promises at most this part of a server
PAPER_APPLICANTS, PAPER_SEEDS = 150, range(1, 9)
REPEATS = 5


@dataclass(frozen=True)
class Shared:
    """One instance and algorithm. `efficiency`: granted amount of the resource of which most is granted, as a part of
    the reference's. `worst`: the least part of its max-min share that a tenant gets."""

    algorithm: str
    servers: int
    seed: int
    efficiency: float
    worst: float
    below_99: float
    messages_of_a_server: float
    ms: float


def instance(servers: int, tenants: int, seed: int) -> dict[str, Any]:
    drawn = random.Random(f"sharing {servers} {tenants} {seed}")
    fleet = [{"id": f"s{number}", "capacity": capacity()} for number in range(servers)]
    made = [_tenant(drawn, number, servers) for number in range(tenants)]
    _fit(fleet, made)
    return {"servers": fleet, "tenants": made}


def _tenant(drawn: random.Random, number: int, servers: int) -> dict[str, Any]:
    persistent = drawn.random() < 0.5
    head = [drawn.uniform(3e-6, 30e-6), drawn.uniform(200, 20_000), drawn.uniform(0.1, 1) if persistent else 0.0]
    follower = [0.7 * head[0], 0.8 * head[1], head[2]]
    reserved = drawn.randint(2_000, 6_000)
    extra: Any = drawn.choice(["none", {"per_s": drawn.randint(reserved // 4, 2 * reserved)}, "all"])
    return {
        "id": f"t{number}",
        "placement": [f"s{server}" for server in drawn.sample(range(servers), DEGREE)],
        "request": [head, *[follower] * (DEGREE - 1)],
        "reserved_per_s": reserved,
        "extra": extra,
    }


def _fit(fleet: list[dict[str, Any]], made: list[dict[str, Any]]) -> None:
    """Lowers reservations on servers of which more would be promised than admission does."""
    whole = {(server["id"], r): amount for server in fleet for r, amount in enumerate(server["capacity"])}
    left = sharing_reference.free_amounts({"servers": fleet, "tenants": made})
    load = {server["id"]: max(1 - left[server["id"], r] / whole[server["id"], r] for r in range(3)) for server in fleet}
    for tenant in made:
        most = max(load[place] for place in tenant["placement"])
        tenant["reserved_per_s"] = int(tenant["reserved_per_s"] * min(1.0, RESERVED_PART / most))


def conserve(made: dict[str, Any], algorithm: str, repeat: int = 1) -> dict[str, Any]:
    flags = ["--algorithm", algorithm, "--policy", "unallocated", "--repeat", str(repeat)]
    return tool.run(["conserve", *flags], None, made)


def compared(servers: int, seed: int, algorithms: tuple[str, ...], repeat: int = REPEATS) -> list[Shared]:
    made = instance(servers, servers * TENANTS_OF_A_SERVER // DEGREE, seed)
    best = sharing_reference.max_min(made)
    found = []
    for algorithm in algorithms:
        answer = conserve(made, algorithm, repeat)
        rates = [tenant["utility_per_s"] for tenant in answer["tenants"]]
        parts = [rate / most for rate, most in zip(rates, best, strict=True) if most > 0]
        found.append(
            Shared(
                algorithm,
                servers,
                seed,
                efficiency(made, rates, best),
                min(parts),
                sum(part < 0.99 for part in parts) / len(parts),
                answer["messages"] / servers,
                answer["slowest_server_us"] / 1_000,
            )
        )
    return found


def efficiency(made: dict[str, Any], rates: list[float], best: list[float]) -> float:
    """Granted amount of the resource of which the reference grants most, as a part of the reference's."""
    free = sharing_reference.free_amounts(made)
    of_all = [sum(amount for (_, r), amount in free.items() if r == resource) for resource in range(3)]

    def granted(by: list[float]) -> list[float]:
        sums = [0.0, 0.0, 0.0]
        for tenant, rate in zip(made["tenants"], by, strict=True):
            for costs in tenant["request"]:
                for resource in range(3):
                    sums[resource] += costs[resource] * rate
        return sums

    most = granted(best)
    scarce = max(range(3), key=lambda resource: most[resource] / of_all[resource])
    return granted(rates)[scarce] / most[scarce]


def rounds_of_all_drf(seed: int) -> tuple[float, float]:
    """All-DRF's efficiency after one round, and after a second over what the first one left, on the paper's fleet."""
    made = placement.instance(seed, PAPER_APPLICANTS, "online", OURS)
    shared = conservation(made, alloc.place(made, "online", "filo"))
    for tenant in shared["tenants"]:
        if "extra" in tenant:
            tenant["extra"] = {"per_s": reserved_per_s(tenant)}  # the paper does not say how much more they want
    best = alloc.conserve(shared, "cdrf-exact")
    scarce = most_wanted_more(shared, best["free_before"])
    one, two = (alloc.conserve(shared, "all", 1, "--rounds", rounds) for rounds in ("1", "2"))
    return part_of(one, best, scarce), part_of(two, best, scarce)


@dataclass(frozen=True)
class Measured:
    found: list[Shared]
    all_drf: list[tuple[float, float]]


def measure(say: Callable[[str], None]) -> Measured:
    found = []
    for seed in SEEDS:
        say(f"{SERVERS} servers, instance {seed} of {len(SEEDS)}")
        found += compared(SERVERS, seed, ("fleet", "level"))
    say(f"{LARGE} servers, about two minutes")
    found += compared(LARGE, 1, ("fleet",), repeat=1)
    say(f"All-DRF, {len(PAPER_SEEDS)} instances of the paper's fleet")
    return Measured(found, [rounds_of_all_drf(seed) for seed in PAPER_SEEDS])


def figures(measured: Measured) -> list[Figure]:
    def of(algorithm: str, servers: int) -> list[Shared]:
        return [one for one in measured.found if (one.algorithm, one.servers) == (algorithm, servers)]

    fleet, level, large = of("fleet", SERVERS), of("level", SERVERS), of("fleet", LARGE)[0]
    size = f"{SERVERS} servers with {TENANTS_OF_A_SERVER} tenants each; worst of {len(fleet)} instances; "
    beside = (
        f"Level-DRF: {median(one.efficiency for one in level):.3f}, worst tenant {min(one.worst for one in level):.2f}"
    )
    messages = f"Level-DRF: {median(one.messages_of_a_server for one in level):.0f}"
    counted = "commitments to heads, and three messages with the coordinator; "
    ms = "the coordinator's round, of one thread's processor; "
    ms += f"Level-DRF's slowest server: {median(o.ms for o in level):.0f}"
    huge = f"{LARGE} servers with {TENANTS_OF_A_SERVER} tenants each; "
    told = (
        f"efficiency {large.efficiency:.4f}, worst tenant {large.worst:.3f}, {large.messages_of_a_server:.0f} messages"
    )
    one, two = (median(pair[which] for pair in measured.all_drf) for which in (0, 1))
    rounds = f"{len(measured.all_drf)} instances of {PAPER_APPLICANTS} applicants that want as much again; "
    rounds += "paper: 0.95 in one round"
    return [
        Figure(
            "sharing_efficiency_1000_servers", min(o.efficiency for o in fleet), "ratio", 0.995, True, size + beside
        ),
        Figure(
            "sharing_worst_tenant_1000_servers",
            min(o.worst for o in fleet),
            "ratio",
            0.99,
            True,
            size + "of its max-min share",
        ),
        Figure(
            "sharing_messages_1000_servers",
            max(o.messages_of_a_server for o in fleet),
            "per server and interval",
            100,
            note=counted + messages,
        ),
        Figure("sharing_1000_servers_ms", max(o.ms for o in fleet), "ms", 50, note=ms),
        Figure("sharing_10000_servers_ms", large.ms, "ms", None, note=huge + told),
        Figure("alldrf_two_rounds_efficiency", two, "ratio", 0.95, True, rounds + f"; one round here: {one:.3f}"),
    ]


def page(measured: Measured, command: str, commit: str, machine: str, table: list[str]) -> str:
    rows = [
        f"| {o.algorithm} | {o.servers} | {o.seed} | {o.efficiency:.4f} | {o.worst:.3f} | {o.below_99:.1%} "
        f"| {o.messages_of_a_server:.0f} | {o.ms:.0f} |"
        for o in measured.found
    ]
    lines = [
        "# Sharing in large fleets",
        "",
        "Unreserved amounts go to the tenants that want more, fairly by dominant share (Filo §4.2). By `fleet`, the",
        "default, the leading coordinator computes all rates each interval from the servers' reports, and servers",
        "commit to them. By `level` servers agree among themselves, as they do while no coordinator answers.",
        "Both are compared with max-min fairness as `loadtest/papers/quorate_papers/sharing_reference.py` computes",
        "it, which shares no code with them.",
        "",
        f"`{command}`, commit {commit}, {machine}.",
        "",
        *table,
        "",
        f"Each server has {TENANTS_OF_A_SERVER} tenants with three replicas; two of three want more. *Below* are",
        "tenants that get less than 99 % of their max-min share. Messages are those of a server in an interval. The",
        "time is the coordinator's, or the slowest server's: of one thread's processor.",
        "",
        "| algorithm | servers | instance | efficiency | worst tenant | below | messages | ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *rows,
    ]
    return "\n".join(lines) + "\n"
