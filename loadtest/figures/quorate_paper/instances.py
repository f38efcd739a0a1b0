"""Instances as Filo §6.2 describes them: 10 servers, up to 150 applicants with a mixture of requirements.

Durability, request size (64 B to 32 KB) and degree (3, 5, 7) are uniform; rates are uniform up to what one shard, and
one server, can carry. A seed makes the same instance everywhere.
"""

from __future__ import annotations

import random
from typing import Any, TypeAlias

from quorate_paper.profiles import chosen

Instance: TypeAlias = dict[str, Any]

SIZES = [64 << power for power in range(10)]
DEGREES = [3, 5, 7]
# A server of today: cores, bytes/s in and out (25 Gbit/s each way), operations/s of two drives.
NOMINAL = [16.0, 6.25e9, 400_000.0]
RESOURCES = ["CPU", "network", "storage IO"]


def capacity() -> list[float]:
    """What may be promised of a server."""
    return [amount * chosen().safety_factor for amount in NOMINAL]


def servers(count: int, domains: int = 0) -> list[dict[str, Any]]:
    """`domains` 0: servers name none."""
    made = [{"id": f"s{number}", "capacity": capacity()} for number in range(count)]
    if domains:
        for number, server in enumerate(made):
            server["failure_domain"] = f"d{number % domains}"
    return made


def applicants(seed: int, count: int, rate_share_max: float = 1.0) -> list[dict[str, Any]]:
    """In the order of their numbers; `rate_share_max`: of the peak rate."""
    drawn = random.Random(seed)
    made = []
    for number in range(count):
        durability = drawn.choice(["in_memory", "persistent"])
        size, degree = drawn.choice(SIZES), drawn.choice(DEGREES)
        sla = {"durability": durability, "replication_degree": degree, "request_size_bytes": size}
        sla["rate_per_s"] = max(1, int(peak_per_s(sla) * rate_share_max * drawn.random()))
        made.append({"id": f"a{number}", "sla": sla})
    return made


def dear_cpu(seed: int, count: int) -> list[dict[str, Any]]:
    """The paper's applicants on a machine where a request costs six times the CPU, so that CPU is scarce."""
    return [_vectors(one["id"], [[6 * v[0], v[1], v[2]] for v in vectors(one)]) for one in applicants(seed, count)]


def unrelated(seed: int, count: int) -> list[dict[str, Any]]:
    """Up to a fifth of a server of each resource, independently; followers need four fifths of what the head does."""
    drawn = random.Random(seed)
    made = []
    for number in range(count):
        degree, head = drawn.choice(DEGREES), [0.2 * drawn.random() for _ in RESOURCES]
        made.append(_of_head(number, degree, head, 0.8))
    return made


def opposed(seed: int, count: int) -> list[dict[str, Any]]:
    """Whoever needs much CPU needs little network: servers fill only when both kinds share them."""
    drawn = random.Random(seed)
    made = []
    for number in range(count):
        degree, part = drawn.choice(DEGREES), drawn.random()
        made.append(_of_head(number, degree, [0.15 * part, 0.15 * (1 - part), 0.1 * drawn.random()], 0.7))
    return made


KINDS = {"Filo §6.2": applicants, "CPU dear": dear_cpu, "unrelated": unrelated, "opposed": opposed}


def _of_head(number: int, degree: int, head: list[float], others: float) -> dict[str, Any]:
    full = capacity()
    amounts = [share * all_ for share, all_ in zip(head, full, strict=True)]
    return _vectors(f"a{number}", [amounts, *[[others * one for one in amounts]] * (degree - 1)])


def _vectors(name: str, replicas: list[list[float]]) -> dict[str, Any]:
    return {"id": name, "sla_per_s": 1_000, "replicas": replicas}


def vectors(applicant: dict[str, Any]) -> list[list[float]]:
    """Demand of each replica, the head first."""
    return applicant["replicas"] if "replicas" in applicant else chosen().demands(applicant["sla"])


def peak_per_s(sla: dict[str, Any]) -> float:
    """The largest rate of one group (Filo §6.1: "bounding SLAs"): of what one shard, and one server, can carry. The
    head is the dearest replica; with each append in a batch of its own, so that some may be."""
    known, (_, network_bytes, storage_io) = chosen(), capacity()
    network = network_bytes / (2 * (sla["request_size_bytes"] + known.read["network"]["batch_header_bytes"]))
    operations = known.operations(sla)
    return float(min(known.shard_peak_per_s(sla), network, storage_io / operations if operations else network))


def conservation(made: Instance, placed: Instance) -> Instance:
    """Filo §6.3: of the tenants that were placed, every other one uses nothing, and the others want all there is."""
    slas = {applicant["id"]: applicant["sla"] for applicant in made["applicants"]}
    tenants = []
    for number, one in enumerate(placed["placed"]):
        tenant = {"id": one["id"], "placement": one["servers"], "sla": slas[one["id"]]}
        tenants.append(tenant | ({"used_per_s": 0} if number % 2 else {"extra": "all"}))
    return {"servers": made["servers"], "tenants": tenants}
