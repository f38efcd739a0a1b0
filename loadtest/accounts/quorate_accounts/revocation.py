"""The time from the answer to `DELETE /v1/keys/{id}` until servers serve no client with a token of the key.

Each key has a client that appends, or one that reads, on and on. Keys are revoked one after the other. Clients of keys
that stay must not fail meanwhile: a revocation is of one key.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import quorate
from quorate_harness.customer import Customer
from quorate_harness.figures import Figure
from quorate_harness.fleet import MeasurementFailed
from quorate_harness.quantiles import quantile
from quorate_local.display import Display

KEYS, KEYS_QUICK = 96, 6  # with those that stay and the own one, below the 100 that a project may have
KEPT = 2  # keys that stay, one for each kind of client
EVERY_S = 0.05
BETWEEN_S = 0.2  # revocations come at any phase of the worker's second
GOAL_S = 10.0
PATIENCE_S = 30.0
SLA = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 20_000}


@dataclass
class Use:
    """A key, and what became of its client. Times are of the monotonic clock."""

    key_id: str
    secret: str
    appends: bool
    served_at: float = 0.0
    revoked_at: float | None = None
    ended_by: str = ""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def took_s(self) -> float:
        """From the revocation until it was served for the last time."""
        assert self.revoked_at is not None, "it was revoked"
        return max(0.0, self.served_at - self.revoked_at)


def measure(customer: Customer, display: Display, quick: bool) -> list[Figure]:
    group_id = str(customer.create_group("revocation", SLA)["id"])
    uses = [_key(customer, number) for number in range((KEYS_QUICK if quick else KEYS) + KEPT)]
    try:
        asyncio.run(_run(customer, group_id, uses, display))
    finally:
        customer.delete(f"/v1/groups/{group_id}")
    revoked = uses[KEPT:]
    took = [use.took_s for use in revoked]
    codes = ", ".join(sorted({use.ended_by for use in revoked}))
    about = f"of {len(took)} keys, half of which read; median {quantile(took, 0.5):.2f} s; clients ended by {codes}"
    broken = sum(use.ended.is_set() for use in uses[:KEPT])
    return [
        Figure("revocation_p99_s", quantile(took, 0.99), "s", GOAL_S, note=about),
        Figure("revocation_others_failed", broken, "clients", 0, note=f"of {KEPT} whose keys stay"),
    ]


def _key(customer: Customer, number: int) -> Use:
    appends = number % 2 == 0
    body = {"name": f"k{number}", "scopes": ["append" if appends else "read"]}
    made = customer.post(f"/v1/projects/{customer.project_id}/keys", body)
    return Use(made["id"], made["secret"], appends)


async def _run(customer: Customer, group_id: str, uses: list[Use], display: Display) -> None:
    async with await quorate.connect_group(customer.api_url, customer.api_key, group_id) as log:
        await log.append(b"something to read")
    tasks = [asyncio.create_task(_use(customer.api_url, group_id, use)) for use in uses]
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not all(use.served_at for use in uses):
            if time.monotonic() > deadline:
                raise MeasurementFailed("a client with a fresh key was not served")
            await asyncio.sleep(EVERY_S)
        for use in uses[KEPT:]:
            await asyncio.to_thread(customer.delete, f"/v1/keys/{use.key_id}")
            use.revoked_at = time.monotonic()
            await asyncio.sleep(BETWEEN_S)
        display.line(f"  {len(uses) - KEPT} keys revoked; waiting until the last of their clients has ended")
        await asyncio.wait_for(asyncio.gather(*(use.ended.wait() for use in uses[KEPT:])), PATIENCE_S)
    except TimeoutError:
        served = sum(not use.ended.is_set() for use in uses[KEPT:])
        raise MeasurementFailed(f"{served} clients are served {PATIENCE_S:.0f} s after their keys ended") from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _use(api_url: str, group_id: str, use: Use) -> None:
    """Appends or reads until a server or the API refuses it."""
    try:
        async with await quorate.connect_group(api_url, use.secret, group_id) as log:
            while True:
                if use.appends:
                    await log.append(b"x")
                else:
                    await log.read(0, max_entries=1)
                use.served_at = time.monotonic()
                await asyncio.sleep(EVERY_S)
    except quorate.QuorateError as error:
        use.ended_by = str(getattr(error, "name", None) or type(error).__name__)
        use.ended.set()
