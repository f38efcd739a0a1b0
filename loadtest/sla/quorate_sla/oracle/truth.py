"""Judges a life by the words of `docs/reference/sla.md`. It knows what happened, and which reports arrived.

Availability is counted in steps of ten milliseconds, requests one by one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from quorate_sla.oracle.life import BEGIN_MS, MINUTE_MS, STEP_MS, Declaration, Life, Reign
from quorate_sla.oracle.outside import unreachable
from quorate_sla.oracle.reports import Heard
from quorate_sla.oracle.service import Outcome

JUDGED_MS_MIN = 1_000
PAUSE_MS_MAX = 100
STOOD_STILL_MS_MAX = 1_000
DAY_MS = 24 * 60 * MINUTE_MS
# Credits in percent of the fee, below shares in percent: the table of the contract.
TIERS: Mapping[str, Sequence[tuple[Fraction, int]]] = {
    "availability": [(Fraction("99.95"), 10), (Fraction(99), 25), (Fraction(95), 50), (Fraction(90), 100)],
    "availability apart": [(Fraction("99.99"), 10), (Fraction("99.9"), 25), (Fraction(99), 50), (Fraction(95), 100)],
    "throughput": [(Fraction("99.9"), 10), (Fraction(99), 25), (Fraction(95), 50), (Fraction(90), 100)],
    "latency": [(Fraction(99), 10), (Fraction(95), 25), (Fraction(90), 50), (Fraction(80), 100)],
    "durability": [(Fraction(100), 100)],
    "order": [(Fraction(100), 100)],
}
MEASURED = ("availability", "throughput", "latency")


@dataclass(frozen=True)
class Minute:
    """`bad`: the clauses that it missed."""

    number: int
    elapsed_ms: int
    active_ms: int
    bad: frozenset[str]


@dataclass(frozen=True)
class Verdict:
    """`bad`: minutes by clause. `active`: the share of time. `credits`: percent of the fee, by clause."""

    minutes: tuple[Minute, ...]
    active: Fraction | None
    credits: Mapping[str, int]

    @property
    def credit_percent(self) -> int:
        return min(100, sum(self.credits.values()))


def judge(life: Life, outcomes: Iterable[Outcome], reports: Iterable[Heard]) -> Verdict:
    known = _Known(life, list(outcomes), list(reports))
    minutes = [known.minute(number) for number in life.minutes if known.elapsed_ms(number) >= JUDGED_MS_MIN]
    declared = [_declared(minute, life.declarations) for minute in minutes]
    elapsed = sum(minute.elapsed_ms for minute in declared)
    active = Fraction(max(0, sum(minute.active_ms for minute in declared)), elapsed) if elapsed else None
    return Verdict(tuple(declared), active, _credits(life, declared, active))


class _Known:
    """The life, as far as reports tell of it."""

    def __init__(self, life: Life, outcomes: list[Outcome], reports: list[Heard]) -> None:
        self.life = life
        self.from_ms = life.active_ms + JUDGED_MS_MIN
        self.to_ms = life.end_ms if life.deleted_ms is None else life.deleted_ms - JUDGED_MS_MIN
        self.reports = self._of_heads(reports)
        self.by_minute: dict[int, list[Heard]] = defaultdict(list)
        for report in self.reports:
            self.by_minute[report.minute - BEGIN_MS // MINUTE_MS].append(report)
        self.reported = sorted(self.by_minute)
        self.accepted = self._accepted()
        self.counted = self._counted(outcomes)
        self.committed_us = sorted(each.at_us for each in outcomes if each.is_committed)

    def minute(self, number: int) -> Minute:
        elapsed_ms = self.elapsed_ms(number)
        if number not in self.by_minute:
            head = self._quiet_head(number)
            if head is None:
                return Minute(number, elapsed_ms, 0, frozenset(MEASURED))
            lost_ms = self._unreachable_ms(number, [(head.server, *self._bounds(number))])
            is_bad = lost_ms > PAUSE_MS_MAX
            return Minute(number, elapsed_ms, elapsed_ms - lost_ms, frozenset(["availability"] if is_bad else []))
        first, last = self._bounds(number)
        active_ms = self.accepted[first // STEP_MS : last // STEP_MS].count(1) * STEP_MS
        # The longer one counts: the time that heads lost, or that in which they were not reached.
        active_ms = min(active_ms, elapsed_ms - self._unreachable_ms(number, self._ruled(number)))
        bad = set()
        if elapsed_ms - active_ms > PAUSE_MS_MAX:
            bad.add("availability")
        owed = [each for each in self.counted[number] if each.is_owed]
        refused = sum(each.entries for each in owed if not each.is_committed)
        if 100 * refused > sum(each.entries for each in owed):
            bad.add("throughput")
        if _p99_us(owed) > self._bound_us(number):
            bad.add("latency")
        return Minute(number, elapsed_ms, active_ms, frozenset(bad))

    def elapsed_ms(self, number: int) -> int:
        first, last = self._bounds(number)
        return last - first

    def _bounds(self, number: int) -> tuple[int, int]:
        """The judged part of the minute, since the begin of the life's month."""
        begin_ms = BEGIN_MS + number * MINUTE_MS
        first, last = max(begin_ms, self.from_ms), min(begin_ms + MINUTE_MS, self.to_ms)
        return first - BEGIN_MS, max(first, last) - BEGIN_MS

    def _of_heads(self, reports: list[Heard]) -> list[Heard]:
        """Without minutes that a former head reports, and that begin after a later head's first report."""
        begun: dict[int, int] = {}
        for report in reports:
            begun[report.reign.epoch] = min(report.from_ms, begun.get(report.reign.epoch, report.from_ms))

        def is_over(report: Heard) -> bool:
            later = (at_ms for epoch, at_ms in begun.items() if epoch > report.reign.epoch)
            return any(at_ms < report.minute * MINUTE_MS for at_ms in later)

        return [report for report in reports if not is_over(report)]

    def _accepted(self) -> bytearray:
        """For each step of the life, whether a head accepted appends, and said so."""
        steps = bytearray((self.life.end_ms - BEGIN_MS) // STEP_MS)
        for report in self.reports:
            reign = report.reign
            for first_ms, last_ms in report.timed:
                self._mark(steps, max(first_ms, report.minute * MINUTE_MS), min(last_ms, reign.to_ms), report.minute, 1)
            for outage in reign.outages:
                self._mark(steps, outage.from_ms, outage.to_ms, report.minute, 0)
        return steps

    @staticmethod
    def _mark(steps: bytearray, from_ms: int, to_ms: int, minute: int, value: int) -> None:
        first = max(from_ms, minute * MINUTE_MS) - BEGIN_MS
        last = min(to_ms, (minute + 1) * MINUTE_MS) - BEGIN_MS
        if first < last:
            count = len(steps[first // STEP_MS : last // STEP_MS])
            steps[first // STEP_MS : first // STEP_MS + count] = bytes([value]) * count

    def _counted(self, outcomes: list[Outcome]) -> dict[int, list[Outcome]]:
        """Appends that a report tells of, by the minute in which the report's time begins."""
        of_epoch: dict[int, list[Outcome]] = defaultdict(list)
        for outcome in sorted(outcomes, key=_at_us):
            of_epoch[outcome.epoch].append(outcome)
        found: dict[int, list[Outcome]] = defaultdict(list)
        for number, reports in self.by_minute.items():
            for report in reports:
                if report.counted:  # spans without a gap
                    known = of_epoch[report.reign.epoch]
                    first = bisect_left(known, report.counted[0][0] * 1_000, key=_at_us)
                    last = bisect_left(known, report.counted[-1][1] * 1_000, key=_at_us)
                    found[number] += known[first:last]
        return found

    def _ruled(self, number: int) -> list[tuple[int, int, int]]:
        """The heads of a minute by their own words: server, and the time until the last second in which it accepted."""
        first, last = self._bounds(number)
        found = []
        for report in sorted(self.by_minute[number], key=lambda each: each.reign.epoch, reverse=True):
            spans = [span for span in report.timed if self._accepts(report.reign, span)]
            until_ms = min(last, spans[-1][1] - BEGIN_MS) if spans else first
            found.append((report.reign.server, max(first, report.from_ms - BEGIN_MS), until_ms))
            last = min(last, report.from_ms - BEGIN_MS)
        return found

    @staticmethod
    def _accepts(reign: Reign, span: tuple[int, int]) -> bool:
        """Whether it accepted at any time in it."""
        stopped_ms = max(0, span[1] - max(reign.to_ms, span[0]))
        for each in reign.outages:
            if each.from_ms < span[1] and each.to_ms > span[0]:
                stopped_ms += min(each.to_ms, span[1]) - max(each.from_ms, span[0])
        return stopped_ms < span[1] - span[0]

    def _unreachable_ms(self, number: int, ruled: list[tuple[int, int, int]]) -> int:
        begin_ms = number * MINUTE_MS
        found = 0
        for server, first_ms, last_ms in ruled:
            steps = unreachable(self.life, server, number)
            found += steps[(first_ms - begin_ms) // STEP_MS : max(0, last_ms - begin_ms) // STEP_MS].count(1)
        return found * STEP_MS

    def _quiet_head(self, number: int) -> Reign | None:
        """The same head reported before and after, had not stood still, and nothing was committed in between."""
        before = max((each for each in self.reported if each < number), default=None)
        after = min((each for each in self.reported if each > number), default=None)
        if before is None or after is None or (after - before) * MINUTE_MS > DAY_MS:
            return None
        for last in self.by_minute[before]:
            for first in self.by_minute[after]:
                ran = max(self._paused_ms(last), self._paused_ms(first)) <= STOOD_STILL_MS_MAX
                if last.reign is first.reign and ran and not self._grew(last, first):
                    return last.reign
        return None

    def _grew(self, last: Heard, first: Heard) -> bool:
        """Whether the log grew from the last that the one report tells until the other begins."""
        from_us, to_us = last.timed[-1][1] * 1_000, first.timed[0][0] * 1_000
        place = bisect_left(self.committed_us, from_us)
        return place < len(self.committed_us) and self.committed_us[place] < to_us

    def _paused_ms(self, report: Heard) -> int:
        begin_ms = report.minute * MINUTE_MS
        told = min(report.timed[-1][1], begin_ms + MINUTE_MS)
        stops = [*((each.from_ms, each.to_ms) for each in report.reign.outages), (report.reign.to_ms, told)]
        return sum(max(0, min(to_ms, told) - max(from_ms, report.from_ms)) for from_ms, to_ms in stops)

    def _bound_us(self, number: int) -> int:
        """The largest of the bounds that held in the minute."""
        begin_ms = BEGIN_MS + number * MINUTE_MS
        held, since_ms = [], None
        for bounds in self.life.bounds:
            begins = since_ms is None or since_ms < begin_ms + MINUTE_MS
            if begins and (bounds.until_ms is None or bounds.until_ms > begin_ms):
                held.append(bounds.bound_us)
            since_ms = bounds.until_ms
        return max(held)


def _at_us(outcome: Outcome) -> int:
    return outcome.at_us


def _p99_us(owed: Iterable[Outcome]) -> int:
    """99 of 100 owed entries were committed within it; 0 if none was."""
    found = sorted((each.latency_us, each.entries) for each in owed if each.latency_us is not None)
    total, seen = sum(entries for _, entries in found), 0
    for latency_us, entries in found:
        seen += entries
        if 100 * seen >= 99 * total:
            return latency_us
    return 0


def _declared(minute: Minute, declarations: Iterable[Declaration]) -> Minute:
    """The minute as an operator has it: bad in all that is measured, and lost whole, with its short pauses besides."""
    bad, active_ms = set(minute.bad), minute.active_ms
    is_lost = False
    for each in declarations:
        if each.from_minute <= minute.number < each.to_minute:
            is_lost = is_lost or each.breaches is None
            bad |= set(MEASURED) if each.breaches is None else {each.breaches}
    if is_lost:
        was_good = not minute.bad
        active_ms = active_ms - minute.elapsed_ms if was_good else 0
    return Minute(minute.number, minute.elapsed_ms, active_ms, frozenset(bad))


def _credits(life: Life, minutes: Sequence[Minute], active: Fraction | None) -> dict[str, int]:
    found = {}
    for clause in (*MEASURED, "durability", "order"):
        if not minutes:
            share = None
        elif clause == "availability":
            share = active
        else:
            share = Fraction(sum(clause not in minute.bad for minute in minutes), len(minutes))
        apart = clause == "availability" and life.availability_ppm == 999_900
        tiers = TIERS["availability apart" if apart else clause]
        percent = 0 if share is None else max((credit for below, credit in tiers if share * 100 < below), default=0)
        found[clause] = percent
    return found
