"""Outcomes of appends. The ideal server of `docs/reference/sla.md` decides what an append is owed, the real one serves
it."""

from __future__ import annotations

from dataclasses import dataclass

from quorate_sla.oracle.life import Append, Life, Reign

WAIT_MS_MAX = 2_000
SLACK_MS = 50
RECOVERY_MS = 30  # a head that was away orders what waits so much later: longer than each bound on latency


@dataclass(frozen=True)
class Outcome:
    """The end of an append at a head. `latency_us`: of an owed one that was committed, from its start."""

    epoch: int
    at_us: int  # the time of its commitment or refusal
    entries: int
    is_owed: bool
    is_committed: bool
    latency_us: int | None


@dataclass
class IdealServer:
    """A bucket that holds one second of the rate, which nothing else holds up. Levels are in entry-milliseconds."""

    rate_per_s: int
    level: int = 0
    at_ms: int = 0
    free_ms: int = 0  # the start of the append before: they keep their order

    def begin(self, at_ms: int) -> None:
        self.level, self.at_ms, self.free_ms = self.rate_per_s * 1_000, at_ms, at_ms

    def start_ms(self, append: Append) -> int | None:
        """The time at which the bucket lets the append pass; None: it is not owed, and takes nothing."""
        cost = append.entries * 1_000
        full = self.rate_per_s * 1_000
        level = min(full, self.level + (append.at_ms - self.at_ms) * self.rate_per_s)
        # A batch above what the bucket holds passes when it is full, and leaves a debt.
        missing = max(0, min(cost, full) - level)
        start_ms = max(self.free_ms, append.at_ms + -(-missing // self.rate_per_s))
        if start_ms > append.at_ms + WAIT_MS_MAX:
            return None
        level = min(full, level + (start_ms - append.at_ms) * self.rate_per_s)
        slack_ms = min(SLACK_MS, append.timeout_ms // 4)
        if start_ms > append.at_ms + append.timeout_ms - slack_ms:
            return None
        self.level, self.at_ms, self.free_ms = level - cost, start_ms, start_ms
        return start_ms


def serve(life: Life) -> list[Outcome]:
    """The outcomes of appends that reached a head. The others never arrived, and show in availability alone."""
    outcomes: list[Outcome] = []
    for reign in life.reigns:
        ideal = IdealServer(life.rate_per_s)
        ideal.begin(reign.from_ms)
        for append in life.appends:
            if reign.from_ms <= append.at_ms < reign.to_ms and not _is_stopped(reign, append.at_ms):
                outcome = _serve(reign, ideal, append)
                if outcome.at_us < reign.to_ms * 1_000:
                    outcomes.append(outcome)
    return outcomes


def _serve(reign: Reign, ideal: IdealServer, append: Append) -> Outcome:
    start_ms = ideal.start_ms(append)
    if start_ms is None:
        return Outcome(reign.epoch, append.at_ms * 1_000, append.entries, False, False, None)
    ordered_ms = _up_from(reign, start_ms)
    if ordered_ms > append.at_ms + min(append.timeout_ms, WAIT_MS_MAX):
        # It is refused once the head runs again, or at its deadline.
        at_ms = append.at_ms + min(append.timeout_ms, WAIT_MS_MAX)
        at_ms = max(at_ms, _runs_from(reign, at_ms))
        return Outcome(reign.epoch, at_ms * 1_000, append.entries, True, False, None)
    committed_us = ordered_ms * 1_000 + append.latency_us
    return Outcome(reign.epoch, committed_us, append.entries, True, True, committed_us - start_ms * 1_000)


def _up_from(reign: Reign, at_ms: int) -> int:
    """The first time from `at_ms` on at which the head orders."""
    away = (each.to_ms for each in reign.outages if each.from_ms <= at_ms < each.to_ms)
    return next((to_ms + RECOVERY_MS for to_ms in away), at_ms)


def _runs_from(reign: Reign, at_ms: int) -> int:
    stopped = (each for each in reign.outages if each.kind == "process")
    return next((each.to_ms for each in stopped if each.from_ms <= at_ms < each.to_ms), at_ms)


def _is_stopped(reign: Reign, at_ms: int) -> bool:
    return _runs_from(reign, at_ms) != at_ms
