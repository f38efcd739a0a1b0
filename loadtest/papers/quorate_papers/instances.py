"""Instances as Filo §6.2 describes them: 10 servers, up to 150 applicants with a mixture of requirements.

Durability, request size (64 B to 32 KB) and degree (3, 5, 7) are uniform; rates are uniform up to the peak of one shard
and one server. A seed makes the same instance everywhere.

There are two regimes of resources: servers of today with the measured cost profile, where network is scarce, and the
paper's testbed (`testbed`), where CPU is.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from quorate_papers import testbed
from quorate_papers.draw import DEGREES, DURABILITIES, SIZES
from quorate_papers.profiles import chosen

Instance: TypeAlias = dict[str, Any]

# A server of today: cores, bytes/s in and out (25 Gbit/s each way), operations/s of two drives.
NOMINAL = [16.0, 6.25e9, 400_000.0]
RESOURCES = ["CPU", "network", "storage IO"]


@dataclass(frozen=True)
class Regime:
    """`servers`: of a count; `applicants`: of a seed and a count."""

    name: str
    servers: Callable[[int], list[dict[str, Any]]]
    applicants: Callable[[int, int], list[dict[str, Any]]]


def capacity() -> list[float]:
    """The part of a server that may be promised."""
    return [amount * chosen().safety_factor for amount in NOMINAL]


def servers(count: int, domains: int = 0) -> list[dict[str, Any]]:
    """`domains` 0: servers name none."""
    made = [{"id": f"s{number}", "capacity": capacity()} for number in range(count)]
    if domains:
        for number, server in enumerate(made):
            server["failure_domain"] = f"d{number % domains}"
    return made


def applicants(seed: int, count: int, rate_share_max: float = 1.0) -> list[dict[str, Any]]:
    """In the order of their numbers; `rate_share_max`: a part of the peak rate."""
    drawn = random.Random(seed)
    chosen().ask(_at_rate_1())
    made = []
    for number in range(count):
        durability = drawn.choice(DURABILITIES)
        size, degree = drawn.choice(SIZES), drawn.choice(DEGREES)
        sla = {"durability": durability, "replication_degree": degree, "request_size_bytes": size}
        sla["rate_per_s"] = max(1, int(peak_per_s(sla) * rate_share_max * drawn.random()))
        made.append({"id": f"a{number}", "sla": sla})
    return made


def dear_cpu(seed: int, count: int) -> list[dict[str, Any]]:
    """The paper's applicants on a machine where a request costs six times the CPU, so that CPU is scarce."""
    made = applicants(seed, count)
    costs = zip(made, vectors_of(made), strict=True)
    return [_vectors(one["id"], [[6 * v[0], v[1], v[2]] for v in replicas]) for one, replicas in costs]


def unrelated(seed: int, count: int) -> list[dict[str, Any]]:
    """Up to a fifth of a server of each resource, independently; followers need four fifths of the head's demand."""
    drawn = random.Random(seed)
    made = []
    for number in range(count):
        degree, head = drawn.choice(DEGREES), [0.2 * drawn.random() for _ in RESOURCES]
        made.append(_of_head(number, degree, head, 0.8))
    return made


def opposed(seed: int, count: int) -> list[dict[str, Any]]:
    """Applicants that need much CPU need little network: servers fill only if both kinds share them."""
    drawn = random.Random(seed)
    made = []
    for number in range(count):
        degree, part = drawn.choice(DEGREES), drawn.random()
        made.append(_of_head(number, degree, [0.15 * part, 0.15 * (1 - part), 0.1 * drawn.random()], 0.7))
    return made


OURS = Regime("servers of today", servers, applicants)
PAPER = Regime("the paper's testbed", testbed.servers, testbed.applicants)
KINDS = [
    OURS,
    PAPER,
    Regime("CPU dear", servers, dear_cpu),
    Regime("unrelated", servers, unrelated),
    Regime("opposed", servers, opposed),
]


def _of_head(number: int, degree: int, head: list[float], others: float) -> dict[str, Any]:
    full = capacity()
    amounts = [share * all_ for share, all_ in zip(head, full, strict=True)]
    return _vectors(f"a{number}", [amounts, *[[others * one for one in amounts]] * (degree - 1)])


def _vectors(name: str, replicas: list[list[float]]) -> dict[str, Any]:
    return {"id": name, "sla_per_s": 1_000, "replicas": replicas}


def vectors(applicant: dict[str, Any]) -> list[list[float]]:
    """Demand of each replica, the head first."""
    return applicant["replicas"] if "replicas" in applicant else chosen().demands(applicant["sla"])


def vectors_of(made: list[dict[str, Any]]) -> list[list[list[float]]]:
    """The same of many applicants, for which the planner is asked once."""
    chosen().ask(one["sla"] for one in made if "sla" in one)
    return [vectors(one) for one in made]


def _at_rate_1() -> list[dict[str, Any]]:
    """Every SLA that is drawn, but for its rate: the peak of a shard does not depend on it."""
    return [
        {"durability": durability, "replication_degree": degree, "request_size_bytes": size, "rate_per_s": 1}
        for durability in DURABILITIES
        for degree in DEGREES
        for size in SIZES
    ]


def peak_per_s(sla: dict[str, Any]) -> float:
    """The largest rate of one group (Filo §6.1: "bounding SLAs"): the peak of one shard and of one server's network and
    disks. The head is the dearest replica. Each append may come in a batch of its own."""
    known, (_, network_bytes, storage_io) = chosen(), capacity()
    network = network_bytes / (2 * (sla["request_size_bytes"] + known.read["network"]["batch_header_bytes"]))
    operations = known.operations(sla)
    return float(min(known.shard_peak_per_s(sla), network, storage_io / operations if operations else network))


def conservation(made: Instance, placed: Instance) -> Instance:
    """Filo §6.3: every other placed tenant uses nothing, and the others want all there is."""
    reservations = {applicant["id"]: _reservation(applicant) for applicant in made["applicants"]}
    tenants = []
    for number, one in enumerate(placed["placed"]):
        tenant = {"id": one["id"], "placement": one["servers"], **reservations[one["id"]]}
        tenants.append(tenant | ({"used_per_s": 0} if number % 2 else {"extra": "all"}))
    return {"servers": made["servers"], "tenants": tenants}


def _reservation(applicant: dict[str, Any]) -> dict[str, Any]:
    """Reservation of a tenant that was this applicant: its SLA, or the cost of a request and its rate."""
    if "sla" in applicant:
        return {"sla": applicant["sla"]}
    per_s = applicant["sla_per_s"]
    request = [[amount / per_s for amount in replica] for replica in applicant["replicas"]]
    return {"request": request, "reserved_per_s": per_s}


def reserved_per_s(tenant: dict[str, Any]) -> int:
    return int(tenant["sla"]["rate_per_s"] if "sla" in tenant else tenant["reserved_per_s"])


def most_wanted(made: Instance) -> int:
    """The scarce resource for applicants: their demand for it is the largest part of all servers' capacity."""
    capacity = [sum(server["capacity"][i] for server in made["servers"]) for i in range(3)]
    return _scarce([vector for replicas in vectors_of(made["applicants"]) for vector in replicas], capacity)


def most_wanted_more(shared: Instance, free: list[float]) -> int:
    """The scarce resource for tenants that want more: their reservations are the largest part of the free amounts.
    Reservations stand for wishes, since a tenant that wants all there is names no rate."""
    wanting = [tenant for tenant in shared["tenants"] if "extra" in tenant]
    chosen().ask(tenant["sla"] for tenant in wanting if "sla" in tenant)
    return _scarce([vector for tenant in wanting for vector in _reserved(tenant)], free)


def _reserved(tenant: dict[str, Any]) -> list[list[float]]:
    if "sla" in tenant:
        return chosen().demands(tenant["sla"])
    return [[amount * tenant["reserved_per_s"] for amount in replica] for replica in tenant["request"]]


def _scarce(demand: list[list[float]], supply: list[float]) -> int:
    """The scarce resource, everywhere: demand is the largest part of supply. Both are known before an algorithm runs,
    so the resource does not depend on the algorithm."""
    parts = [sum(vector[i] for vector in demand) / supply[i] if supply[i] else 0.0 for i in range(len(RESOURCES))]
    return max(range(len(RESOURCES)), key=parts.__getitem__)
