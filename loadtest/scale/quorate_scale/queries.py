"""How long customers wait for usage, SLA reports and the open invoice, over HTTP, one request after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import cycle, islice

from quorate_scale.world import WINDOWS_GROUPS, World

REQUESTS = 200
WARM = 10


@dataclass(frozen=True)
class Waits:
    """Milliseconds, in the order of the requests."""

    usage_ms: list[float]
    sla_ms: list[float]
    invoice_ms: list[float]


def measure(world: World) -> Waits:
    """Requests go to all customers alike, of which the first has a tenth of all groups."""
    month = f"{datetime.now(UTC):%Y-%m}"

    def of_groups(path: str, query: dict[str, str] | None = None) -> Iterator[Callable[[], object]]:
        for number in range(WINDOWS_GROUPS):
            for customer in world.customers:
                group_id = world.groups[customer.organization][number]
                yield partial(customer.get, f"/v1/groups/{group_id}/{path}", query)

    return Waits(
        _timed(list(of_groups("usage"))),
        _timed(list(of_groups("sla", {"month": month}))),
        _timed([partial(customer.get, "/v1/invoices/current") for customer in world.customers]),
    )


def _timed(requests: list[Callable[[], object]]) -> list[float]:
    for request in islice(cycle(requests), WARM):
        request()
    waits = []
    for request in islice(cycle(requests), REQUESTS):
        begun = time.monotonic()
        request()
        waits.append((time.monotonic() - begun) * 1_000)
    return waits


def p99(waits: list[float]) -> float:
    """99 of 100 requests took no longer."""
    return sorted(waits)[-(-99 * len(waits) // 100) - 1]
