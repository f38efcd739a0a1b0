"""Spend caps that act: a client that spends all it can on burst capacity, until its cap suspends or throttles it.

The cost is computed here, from the log and the group's price, and not by the service. It is that of reservation,
appends and kept data at its bound. A suspension has to count them until the month's end.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from quorate_harness.customer import Customer, billed_entries
from quorate_harness.figures import Figure
from quorate_harness.fleet import MeasurementFailed
from quorate_local.display import Display
from quorate_sla.clients import Program

RATE_PER_S = 200
SIZE_BYTES = 16
RETENTION_BYTES = 1 << 20
WARM_S = 30  # until burst capacity flows, and the worker has had its first looks
PACE_S = 3.0
SPEND_S = 90  # until the cap, at that pace
TIMEOUT_S = 240
QUIET_S = 3.0  # at no more than the reservation: then a throttle is in force
BILLED_TIMEOUT_S = 60.0
MONTH_LEFT_S_MIN = 3_600
GOAL_RATIO = 0.01
GOAL_S = 60.0

KINDS = ("appends", "storage")


@dataclass(frozen=True)
class Sample:
    at_s: float
    acked: int
    unknown: int
    suspended: bool


@dataclass
class Spender:
    """The client's process, and what it has told until now."""

    process: subprocess.Popen[str]
    samples: list[Sample] = field(default_factory=list)

    def follow(self) -> None:
        assert self.process.stdout is not None, "it is a pipe"
        for line in self.process.stdout:
            self.samples.append(Sample(**json.loads(line)))


@dataclass(frozen=True)
class Cost:
    """The cost of a group with this price since its begin, in micros."""

    hourly_micros: int
    per_append_micros: float
    per_megabyte_second_micros: float
    began_s: float
    month_end_s: float

    @classmethod
    def of(cls, group: dict[str, Any]) -> Cost:
        usage = {each["kind"]: each["unit_price_micros"] / each["price_quantity"] for each in group["price"]["usage"]}
        began = datetime.fromisoformat(group["created_at"]).timestamp()
        now = datetime.now(UTC)
        end = (now.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)).replace(day=1)
        appends, storage = (usage[kind] for kind in KINDS)
        return cls(group["price"]["hourly_micros"], appends, storage, began, end.timestamp())

    def spent_micros(self, entries: int, at_s: float) -> float:
        return self.hourly_micros * (at_s - self.began_s) / 3_600 + entries * self.per_append_micros

    def certain_micros(self, entries: int) -> float:
        """Until the month's end, with all that the log may keep for all of that time."""
        kept = RETENTION_BYTES / 1e6 * (self.month_end_s - self.began_s) * self.per_megabyte_second_micros
        return self.spent_micros(entries, self.month_end_s) + kept


@dataclass(frozen=True)
class Outcome:
    """`enforced_s`: from the time at which the log cost the cap until the cap was in force; below 0: before it."""

    action: str
    monthly_micros: int
    reached_micros: float
    entries: int
    enforced_s: float

    @property
    def overshoot(self) -> float:
        return max(0.0, self.reached_micros / self.monthly_micros - 1)


def measure(customer: Customer, display: Display, quick: bool) -> list[Figure]:
    outcomes = []
    for action in ("suspend",) if quick else ("suspend", "throttle"):
        # An organization each: a cap counts all groups of one.
        with Customer(customer.api_url, f"cap-{action}") as capped:
            outcome = _run(capped, action, SPEND_S // 3 if quick else SPEND_S, display)
        display.line(
            f"    {action}: cap {outcome.monthly_micros / 1e6:.3f} USD, reached {outcome.reached_micros / 1e6:.3f} USD"
            f" with {outcome.entries} entries; in force {outcome.enforced_s:+.1f} s after the log cost it"
        )
        outcomes.append(outcome)
    return figures(outcomes)


def figures(outcomes: list[Outcome]) -> list[Figure]:
    """A throttle promises no amount, so that overshoot is of suspensions."""
    suspended = [each for each in outcomes if each.action == "suspend"]
    worst = max(suspended, key=lambda each: each.overshoot)
    note = f"cap {worst.monthly_micros} micros, month will cost {worst.reached_micros:.0f}; {worst.entries} entries"
    latest = max(each.enforced_s for each in outcomes)
    told = ", ".join(f"{each.action} {each.enforced_s:+.1f} s" for each in outcomes)
    return [
        Figure("spend_cap_overshoot_ratio", round(worst.overshoot, 4), "ratio", GOAL_RATIO, note=note),
        Figure("spend_cap_enforced_s", round(max(0.0, latest), 1), "s", GOAL_S, note=told),
    ]


def _run(customer: Customer, action: str, spend_s: int, display: Display) -> Outcome:
    sla = {"durability": "in_memory", "replication_degree": 2, "request_size_bytes": SIZE_BYTES}
    sla |= {"rate_per_s": RATE_PER_S, "retention_bytes": RETENTION_BYTES}
    group = customer.create_group(f"cap-{action}", sla)
    cost = Cost.of(group)
    if cost.month_end_s - time.time() < MONTH_LEFT_S_MIN:
        raise MeasurementFailed("the month is about to end, and caps with it: measure in an hour")
    spender = Spender(Program("spender", "python", group["id"]).start(customer, SIZE_BYTES, TIMEOUT_S + WARM_S))
    reader = threading.Thread(target=spender.follow, daemon=True)
    reader.start()
    try:
        time.sleep(WARM_S)
        budget = _set_cap(customer, action, cost, spender.samples, spend_s)
        display.line(
            f"    {action}: spending {_most_per_s(spender.samples):.0f} entries/s against {RATE_PER_S} reserved"
        )
        _until(lambda: _is_in_force(action, customer, group["id"], spender), "the cap did not act")
    finally:
        spender.process.kill()
        reader.join(10)
    outcome = _outcome(action, cost, budget["monthly_micros"], spender.samples)
    _check_bill(customer, budget["id"], group["id"], spender.samples[-1])
    customer.delete(f"/v1/groups/{group['id']}")
    return outcome


def _set_cap(customer: Customer, action: str, cost: Cost, samples: list[Sample], spend_s: int) -> dict[str, Any]:
    """A cap that is reached in so many seconds at the fastest pace until now."""
    if not samples:
        raise MeasurementFailed("the client has appended nothing")
    entries, pace = samples[-1].acked, _most_per_s(samples)
    if pace < 10 * RATE_PER_S:
        raise MeasurementFailed(f"{pace:.0f} entries/s are no burst")
    now = cost.certain_micros(entries) if action == "suspend" else cost.spent_micros(entries, time.time())
    return customer.put(
        "/v1/budgets", {"monthly_micros": round(now + pace * spend_s * cost.per_append_micros), "action": action}
    )


def _most_per_s(samples: list[Sample]) -> float:
    """The fastest pace over some seconds: burst capacity comes and goes with other work on the machine."""
    paces = [0.0]
    for first in samples:
        last = next((each for each in samples if each.at_s >= first.at_s + PACE_S), None)
        if last is not None:
            paces.append((last.acked - first.acked) / (last.at_s - first.at_s))
    return max(paces)


def _is_in_force(action: str, customer: Customer, group_id: str, spender: Spender) -> bool:
    if action == "suspend":
        return spender.samples[-1].suspended
    return customer.get(f"/v1/groups/{group_id}")["access"] == "reserved" and _calm_since(spender.samples) is not None


def _calm_since(samples: list[Sample]) -> float | None:
    """The time since which no more than the reservation was acked, if that is some seconds ago."""
    last = samples[-1]
    since = last
    for each in reversed(samples):
        if last.acked - each.acked > RATE_PER_S * (last.at_s - each.at_s) * 1.1 + RATE_PER_S:
            break
        since = each
    return since.at_s if last.at_s - since.at_s >= QUIET_S else None


def _outcome(action: str, cost: Cost, monthly_micros: int, samples: list[Sample]) -> Outcome:
    last = samples[-1]
    entries = last.acked + last.unknown
    if action == "suspend":
        reached = cost.certain_micros(entries)
        over = next((each.at_s for each in samples if cost.certain_micros(each.acked) >= monthly_micros), None)
        in_force = next(each.at_s for each in samples if each.acked == last.acked)
    else:
        reached = cost.spent_micros(entries, last.at_s)
        over = next((each.at_s for each in samples if cost.spent_micros(each.acked, each.at_s) >= monthly_micros), None)
        calm = _calm_since(samples)
        assert calm is not None, "it was waited for"
        in_force = calm
    enforced_s = in_force - over if over is not None else 0.0
    return Outcome(action, monthly_micros, reached, entries, enforced_s)


def _check_bill(customer: Customer, budget_id: str, group_id: str, last: Sample) -> None:
    """The bill is the client's count, within the appends whose outcome it does not know."""
    customer.delete(f"/v1/budgets/{budget_id}")
    customer.settled_invoice(group_id, last.acked + last.unknown, BILLED_TIMEOUT_S)
    billed = billed_entries(customer.get("/v1/invoices/current"), group_id)
    if not last.acked <= billed <= last.acked + last.unknown:
        raise MeasurementFailed(f"{billed} entries are billed, {last.acked} acked, {last.unknown} unknown")


def _until(holds: Any, otherwise: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        if time.monotonic() > deadline:
            raise MeasurementFailed(f"{otherwise} within {TIMEOUT_S} s")
        time.sleep(0.5)
