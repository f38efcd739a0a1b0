"""Max-min fairness of dominant shares (C-DRF, Filo §4.2) for instances of `quorate-planner conserve`, computed without
any code of the planner's: what its algorithms are measured by."""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

Use = tuple[tuple[str, int], float]


@dataclass
class _Tenant:
    """`share`: of its scarcest resource, for one request; `stops`: the level at which it has all that it wants."""

    uses: list[Use]
    share: float = 0.0
    stops: float = 0.0


@dataclass
class _Resource:
    """`taken` by tenants that have stopped, and `rise` by each level of those that have not."""

    free: float
    rise: float = 0.0
    taken: float = 0.0
    users: list[int] = field(default_factory=list)

    def full_at(self) -> float:
        return max(0.0, self.free - self.taken) / self.rise if self.rise > 0 else float("inf")


def free_amounts(instance: dict[str, Any]) -> dict[tuple[str, int], float]:
    """Unreserved amounts, by server and resource."""
    free = {(server["id"], r): amount for server in instance["servers"] for r, amount in enumerate(server["capacity"])}
    for tenant in instance["tenants"]:
        for (place, r), cost in _uses(tenant):
            free[place, r] -= cost * tenant["reserved_per_s"]
    return free


def max_min(instance: dict[str, Any]) -> list[float]:
    """Requests/s above the reservation of each tenant, as real numbers."""
    resources = {place: _Resource(amount) for place, amount in free_amounts(instance).items()}
    tenants = [_of(tenant, resources) for tenant in instance["tenants"]]
    for number, tenant in enumerate(tenants):
        for place, cost in tenant.uses if tenant.stops > 0 else []:
            resources[place].rise += cost / tenant.share
            resources[place].users.append(number)
    return _rise(tenants, resources)


def _rise(tenants: list[_Tenant], resources: dict[tuple[str, int], _Resource]) -> list[float]:
    rates: list[float | None] = [None if tenant.stops > 0 else 0.0 for tenant in tenants]
    events: list[tuple[float, str, Any]] = [(t.stops, "", n) for n, t in enumerate(tenants) if t.stops > 0]
    events += [(resource.full_at(), "full", place) for place, resource in resources.items()]
    events = [event for event in events if event[0] < float("inf")]
    heapq.heapify(events)

    def stop(number: int, level: float) -> None:
        tenant = tenants[number]
        rate = level / tenant.share
        rates[number] = rate
        for place, cost in tenant.uses:
            resources[place].rise -= cost / tenant.share
            resources[place].taken += cost * rate

    while events:
        level, what, which = heapq.heappop(events)
        if what != "full":
            if rates[which] is None:
                stop(which, level)
            continue
        rising = [number for number in resources[which].users if rates[number] is None]
        now_at = resources[which].full_at()
        if rising and now_at > level * (1 + 1e-12):
            if now_at < float("inf"):
                heapq.heappush(events, (now_at, "full", which))
            continue
        for number in rising:
            stop(number, level)
    return [rate or 0.0 for rate in rates]


def _of(tenant: dict[str, Any], resources: dict[tuple[str, int], _Resource]) -> _Tenant:
    uses = _uses(tenant)
    extra = tenant.get("extra", "none")
    wanted = {"none": 0.0, "all": float("inf")}[extra] if isinstance(extra, str) else float(extra["per_s"])
    if wanted == 0 or any(resources[place].free <= 0 for place, _ in uses):
        return _Tenant(uses)
    share = max(cost / resources[place].free for place, cost in uses)
    return _Tenant(uses, share, wanted * share)


def _uses(tenant: dict[str, Any]) -> list[Use]:
    by_place: defaultdict[tuple[str, int], float] = defaultdict(float)
    for server, costs in zip(tenant["placement"], tenant["request"], strict=True):
        for resource, cost in enumerate(costs):
            if cost > 0:
                by_place[server, resource] += cost
    return list(by_place.items())
