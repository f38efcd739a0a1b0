"""Figure 16 of Pulsar (OSDI'14): the time that a global allocation takes, for datacenters of 3 000 to 24 000 flows.

As in §6.4: 12 machines a server, each the source of one flow; 44 % of the flows go to an appliance, of which there is
one for ten servers, and the others to another machine of the same tenant. Resources are each server's uplink and
downlink, and the appliances. Times are of one thread's processor.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from quorate_harness.figures import Figure
from quorate_papers import tool

VMS_PER_SERVER = 12
SERVERS_PER_APPLIANCE = 10
TO_APPLIANCES = 0.44
LINK_BYTES_PER_S = 1_250_000_000
APPLIANCE_BYTES_PER_S = 4 * LINK_BYTES_PER_S
DEMAND_BYTES_PER_S = (20_000_000, 600_000_000)  # a server's flows want about three times its uplink
TENANT_VMS = (10, 500)
SIZES = (3_000, 6_000, 12_000, 24_000)
ACTIVE = (0.2, 0.6, 1.0)
POLICIES = ("drf", "hierarchical-drf", "first-fit")
REPEATS = 5
DRF_MS_GOAL, HIERARCHICAL_MS_GOAL = 50, 200
# Read off Figure 16 and from the text: 24 000 VMs.
PAPER_S = {0.2: 1.5, 1.0: 4.9}


@dataclass(frozen=True)
class Point:
    """`full`: resources of which less than a thousandth is left."""

    policy: str
    vms: int
    active: float
    flows: int
    resources: int
    ms: float
    full: int


def datacenter(vms: int, active: float, seed: int) -> dict[str, Any]:
    """Demands, weights and capacities, as `quorate-planner share` reads them."""
    choice = random.Random(f"{vms} {active} {seed}")
    servers = vms // VMS_PER_SERVER
    appliances = servers // SERVERS_PER_APPLIANCE
    tenants = _tenants(choice, vms)
    flows = []
    for tenant, (first, last) in enumerate(tenants):
        for vm in range(first, last):
            if choice.random() >= active:
                continue
            wanted = choice.randint(*DEMAND_BYTES_PER_S)
            other = servers_downlink(choice.randrange(first, last), servers)
            appliance = 2 * servers + choice.randrange(appliances)
            to = appliance if choice.random() < TO_APPLIANCES else other
            flows.append({"project": tenant, "demand": [[vm // VMS_PER_SERVER, wanted], [to, wanted]]})
    choice.shuffle(flows)
    return {
        "capacity": [LINK_BYTES_PER_S] * (2 * servers) + [APPLIANCE_BYTES_PER_S] * appliances,
        "projects": [{"weight": choice.choice([1, 2, 3])} for _ in tenants],
        "flows": flows,
    }


def servers_downlink(vm: int, servers: int) -> int:
    return servers + vm // VMS_PER_SERVER


def _tenants(choice: random.Random, vms: int) -> list[tuple[int, int]]:
    """The machines of each, one after the other: from, and up to."""
    tenants, first = [], 0
    while first < vms:
        last = min(vms, first + choice.randint(*TENANT_VMS))
        tenants.append((first, last))
        first = last
    return tenants


def measure(seed: int = 1) -> list[Point]:
    return [point for vms in SIZES for active in ACTIVE for point in _times(datacenter(vms, active, seed), vms, active)]


def _times(instance: dict[str, Any], vms: int, active: float) -> list[Point]:
    points = []
    for policy in POLICIES:
        answer = tool.run(["share", "--policy", policy, "--repeat", str(REPEATS)], None, instance)
        pairs = zip(answer["used"], instance["capacity"], strict=True)
        full = sum(used >= 0.999 * capacity for used, capacity in pairs)
        ms = answer["elapsed_us"] / 1_000
        points.append(Point(policy, vms, active, len(instance["flows"]), len(instance["capacity"]), ms, full))
    return points


def figures(points: list[Point]) -> list[Figure]:
    def largest(policy: str) -> Point:
        return next(p for p in points if (p.policy, p.vms, p.active) == (policy, SIZES[-1], 1.0))

    drf, hierarchical = largest("drf"), largest("hierarchical-drf")
    size = f"{drf.flows} flows, {drf.resources} resources; "
    paper = f"the paper: 1 to 5 s on its machine, ten times that with H-DRF; median of {REPEATS}"
    return [
        Figure("drf_24k_flows_ms", drf.ms, "ms", DRF_MS_GOAL, note=size + paper),
        Figure("hdrf_24k_flows_ms", hierarchical.ms, "ms", HIERARCHICAL_MS_GOAL, note=size + paper),
    ]


def page(points: list[Point], command: str, commit: str, machine: str, table: list[str]) -> str:
    rows = [
        f"| {p.policy} | {p.vms} | {p.active:.0%} | {p.flows} | {p.resources} | {p.ms:.1f} | {p.full} |" for p in points
    ]
    lines = [
        "# Pulsar's Figure 16: the time of an allocation",
        "",
        "A policy `A = MRA(D, W, C)` shares resources among flows that need several at once (Pulsar §4.1,",
        "`services/crates/policies`). The datacenters are those of §6.4: 12 machines a server with a flow each, 44 %",
        "of them to appliances. Times are of one thread's processor; 24 000 flows are all of them active.",
        "",
        f"`{command}`, commit {commit}, {machine}.",
        "The paper: 1.5 s with a fifth of 24 000 active, 4.9 s with all, ten times that with H-DRF, on its machine.",
        "",
        "![times](figure-16.svg)",
        "",
        *table,
        "",
        "| policy | machines | active | flows | resources | ms | resources full |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *rows,
        "",
        "Both kinds of DRF are exact: `POLICY_INSTANCES=10000 cargo test -p quorate-policies` compares them with",
        "oracles that share no code with them.",
        "",
        "[Sharing in large fleets](sharing.md) has what coordinators compute each interval.",
    ]
    return "\n".join(lines) + "\n"
