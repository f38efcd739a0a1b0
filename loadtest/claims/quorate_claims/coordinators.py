"""Losing the coordinator that leads, of three: for how long is nothing admitted, and nothing appended?

Half of the trials kill the leader with kill -9, under a steady stream of admissions. The gap is the longest time
between two answered admissions. The other half kill it together with the head of a group that receives appends at a
steady rate. There the gap is the longest time between two acknowledgements. The killed processes return before the next
trial. At the end all entries that were acknowledged are read back, once and in order.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from itertools import pairwise
from uuid import uuid4

import httpx2

from quorate_claims.claim import Conditions
from quorate_claims.failover import once_acknowledged
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.quantiles import median, quantile
from quorate_harness.steady import Steady

COORDINATORS = 3
SERVERS = 5
TRIALS = 30
TRIALS_QUICK = 2
ADMISSIONS_PER_S = 50
ADMISSION_TIMEOUT_S = 5.0
GROUPS_KEPT = 50  # the oldest is deleted when there are more
RATE_PER_S = 1_000
RESERVED_PER_S = 4_000
LEADER_GOAL_MS, BOTH_GOAL_MS = 1_000, 2_000
SETTLE_S = 1.5
PHASE_S = 0.25  # kills hit all phases of heartbeats
AFTER_S = 3.0  # a gap has ended by then
RECOVER_TIMEOUT_S = 60.0
SLA = {
    "durability": "in_memory", "replication_degree": 1, "request_size_bytes": 64, "rate_per_s": 10, "region": "local",
    "min_replicas": None, "retention_bytes": 64 << 20,
}  # fmt: skip


class Admissions:
    """Admits groups at a steady rate, each one after the other's answer, and deletes old ones."""

    def __init__(self, servers: Fleet) -> None:
        self._http = servers.coordinator_client(ADMISSION_TIMEOUT_S)
        self.answered_s: list[float] = []
        self.refused: list[str] = []
        self._kept: deque[str] = deque()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def longest_gap_ms(self, since_s: float) -> float:
        """The longest time without an answered admission, from `since_s` on."""
        times = [since_s, *(each for each in list(self.answered_s) if each > since_s), time.monotonic()]
        return max(after - before for before, after in pairwise(times)) * 1_000

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(3 * ADMISSION_TIMEOUT_S)
        self._http.close()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping.is_set():
            due = max(due + 1 / ADMISSIONS_PER_S, time.monotonic() - 1 / ADMISSIONS_PER_S)
            self._admit(str(uuid4()))
            while len(self._kept) > GROUPS_KEPT:
                self._call("DELETE", self._kept.popleft())
            time.sleep(max(0.0, due - time.monotonic()))

    def _admit(self, group_id: str) -> None:
        answer = self._call("PUT", group_id, {"sla": SLA, "project_id": str(uuid4())})
        if answer is None:
            return
        if answer.status_code == 201:
            self.answered_s.append(time.monotonic())
            self._kept.append(group_id)
        elif answer.status_code != 503:
            self.refused.append(answer.text[:300])

    def _call(self, method: str, group_id: str, body: dict[str, object] | None = None) -> httpx2.Response | None:
        """None: the leader ended meanwhile. Such a call is not repeated: the next one tells."""
        try:
            return self._http.request(method, f"/v1/groups/{group_id}", json=body)
        except httpx2.TransportError:
            return None


def measure(conditions: Conditions) -> list[Figure]:
    trials = conditions.trials or (TRIALS_QUICK if conditions.quick else TRIALS)
    display = conditions.display
    with fleet(conditions.folder, display, SERVERS, coordinators=COORDINATORS) as servers:
        group_id = servers.create_group("a-group", "persistent", RESERVED_PER_S)
        leader_gaps = _leader_killed(servers, trials, conditions)
        both_gaps = []
        with Steady(servers, "persistent", [group_id], "--rate", str(RATE_PER_S)) as load:
            for number in range(trials):
                display.progress(f"  head and leader, trial {number + 1} of {trials}")
                both_gaps.append(_both_killed(servers, group_id, load))
            ended = load.end()
            if ended["refused"] or ended["unknown"]:
                raise MeasurementFailed(f"appends failed: refused {ended['refused']}, unknown {ended['unknown']}")
            display.line(f"  {load.verify()}")
    for name, gaps in (("leader", leader_gaps), ("head and leader", both_gaps)):
        display.line(f"  {name} killed {len(gaps)} times: median {median(gaps):,.0f} ms, greatest {max(gaps):,.0f} ms")
    note = f"{trials} kills of the leader of {COORDINATORS}"
    return [
        Figure("coordinator_failover_p99_ms", round(quantile(leader_gaps, 0.99), 1), "ms", LEADER_GOAL_MS, note=note),
        Figure("coordinator_failover_median_ms", round(median(leader_gaps), 1), "ms"),
        Figure(
            "head_and_coordinator_failover_p99_ms", round(quantile(both_gaps, 0.99), 1), "ms", BOTH_GOAL_MS, note=note
        ),
        Figure("head_and_coordinator_failover_median_ms", round(median(both_gaps), 1), "ms"),
    ]


def _leader_killed(servers: Fleet, trials: int, conditions: Conditions) -> list[float]:
    gaps = []
    admissions = Admissions(servers)
    try:
        for number in range(trials):
            conditions.display.progress(f"  leader, trial {number + 1} of {trials}")
            time.sleep(SETTLE_S + random.uniform(0, PHASE_S))
            leader, killed_s = servers.stack.leader_name(), time.monotonic()
            servers.stack.crash(leader)
            time.sleep(AFTER_S)
            gaps.append(admissions.longest_gap_ms(killed_s))
            servers.stack.restart(leader)
    finally:
        admissions.stop()
    if admissions.refused:
        raise MeasurementFailed(f"an admission was refused: {admissions.refused[0]}")
    if len(admissions.answered_s) < trials * ADMISSIONS_PER_S:
        raise MeasurementFailed(f"only {len(admissions.answered_s)} admissions were answered")
    return gaps


def _both_killed(servers: Fleet, group_id: str, load: Steady) -> float:
    servers.wait_whole(group_id, timeout_s=RECOVER_TIMEOUT_S)
    time.sleep(SETTLE_S + random.uniform(0, PHASE_S))
    head = servers.group(group_id)["replicas"][0]
    victim, leader = servers.stack.servers_by_address()[head["address"]], servers.stack.leader_name()
    load.mark("trial")
    servers.stack.crash(leader)
    servers.stack.kill_server(victim)
    servers.wait(lambda: servers.group(group_id)["replicas"][0]["server_id"] != head["server_id"], "a new head")
    window = once_acknowledged(load)
    assert window.gap is not None, "a trial has a gap"
    servers.stack.restart(leader)
    servers.restart_server(victim)
    return (window.gap[1] - window.gap[0]) / 1_000
