"""Reports of servers about a life, after `docs/internals/telemetry.md`: usage windows, in parts, late, twice and out of
order."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

from quorate_api.telemetry.windows import WINDOW_S, Window
from quorate_sla.oracle.life import MINUTE_MS, Life, Reign
from quorate_sla.oracle.reports import Heard
from quorate_sla.oracle.service import Outcome

GROUP = "00000000-0000-7000-8000-000000000001"
EXTRA_SHARE = 0.3  # the share of windows that are also reported before they are complete


def windows_of(life: Life, outcomes: Iterable[Outcome], reports: Iterable[Heard]) -> list[Window]:
    """Reports as they arrive: all that is in `reports`, some of it several times, in any order."""
    chance = random.Random(life.seed + 1)
    counts = _Counts(outcomes)
    found = []
    for heard in reports:
        parts = {len(heard.timed)}
        if chance.random() < EXTRA_SHARE:
            parts.add(chance.randint(1, len(heard.timed)))
        for part in parts:
            found += [_window(heard, part, counts)] * chance.choice((1, 1, 2))
        if chance.random() < EXTRA_SHARE:
            found.append(_of_follower(heard))
    chance.shuffle(found)
    return found


class _Counts:
    """Outcomes of each epoch in order, and what the log holds by then."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self.of_epoch: dict[int, list[Outcome]] = {}
        found = sorted(outcomes, key=lambda each: each.at_us)
        for outcome in found:
            self.of_epoch.setdefault(outcome.epoch, []).append(outcome)
        self.times_us = {epoch: [each.at_us for each in own] for epoch, own in self.of_epoch.items()}
        committed = [each for each in found if each.is_committed]
        self.committed_us = [each.at_us for each in committed]
        self.committed = [0, *accumulate(each.entries for each in committed)]

    def log_at(self, at_ms: int) -> int:
        """Entries in the log at this time."""
        return self.committed[bisect_left(self.committed_us, at_ms * 1_000)]

    def within(self, epoch: int, span: tuple[int, int]) -> list[Outcome]:
        times_us = self.times_us.get(epoch, [])
        first, last = bisect_left(times_us, span[0] * 1_000), bisect_left(times_us, span[1] * 1_000)
        return self.of_epoch[epoch][first:last] if first < last else []


def _window(heard: Heard, part: int, counts: _Counts) -> Window:
    """The window after so many of its spans."""
    begin_ms = heard.minute * MINUTE_MS
    active_ms = paused_ms = 0
    to_ms = heard.from_ms
    for span in heard.timed[:part]:
        active, paused, piece_to_ms = _shares(heard.reign, span, begin_ms)
        active_ms, paused_ms = active_ms + active, paused_ms + paused
        if active:
            to_ms = piece_to_ms
    end_ms = heard.timed[part - 1][1]
    own = [span for span in heard.timed[:part] if span in heard.counted]
    told = [each for span in own for each in counts.within(heard.reign.epoch, span)]
    owed = [each for each in told if each.is_owed]
    refused = sum(each.entries for each in owed if not each.is_committed)
    others = sum(each.entries for each in told if not each.is_owed)
    judged: Counter[int] = Counter()
    for each in owed:
        if each.latency_us is not None:
            judged[_bucket(each.latency_us)] += each.entries
    first = counts.log_at(heard.timed[0][0] if heard.timed[0] in heard.counted else heard.timed[0][1])
    committed = counts.log_at(end_ms)
    return Window(
        GROUP,
        heard.reign.server,
        heard.reign.incarnation,
        heard.reign.epoch,
        begin_ms // 1_000,
        "head",
        committed_entries=committed,
        committed_bytes=64 * committed,
        first_committed_entries=first,
        first_committed_bytes=64 * first,
        offered_entries=sum(each.entries for each in told),
        throttled_entries=refused + others,
        throttled_within_sla_entries=refused,
        within_sla_entries=sum(each.entries for each in owed),
        active_ms=active_ms,
        paused_ms=paused_ms,
        from_ms=heard.from_ms,
        to_ms=to_ms,
        stored_bytes=64 * committed,
        latency_us=dict(judged),
    )


def _shares(reign: Reign, span: tuple[int, int], begin_ms: int) -> tuple[int, int, int]:
    """Active and paused time of a span in the minute, and its end there. A span across minutes is divided evenly."""
    stops = [(each.from_ms, each.to_ms) for each in reign.outages if each.from_ms < span[1] and each.to_ms > span[0]]
    if reign.to_ms < span[1]:
        stops.append((reign.to_ms, span[1]))
    paused_ms = sum(min(to_ms, span[1]) - max(from_ms, span[0]) for from_ms, to_ms in stops)
    whole_ms = span[1] - span[0]
    first_ms, last_ms = max(span[0], begin_ms), min(span[1], begin_ms + MINUTE_MS)
    if (first_ms, last_ms) == span:
        return whole_ms - paused_ms, paused_ms, last_ms

    def share(amount_ms: int) -> int:
        up_to = (amount_ms * (at_ms - span[0]) // whole_ms for at_ms in (last_ms, first_ms))
        after, before = up_to
        return after - before

    return share(whole_ms - paused_ms), share(paused_ms), last_ms


def _of_follower(heard: Heard) -> Window:
    """A replica that is not the head reports as well, and counts for nothing here."""
    reign = heard.reign
    return Window(
        GROUP, reign.server + 5, reign.incarnation, reign.epoch, heard.minute * WINDOW_S, "follower",
        within_sla_entries=9, throttled_within_sla_entries=9, active_ms=1,
    )  # fmt: skip


def _bucket(value_us: int) -> int:
    """Log-linear, 32 steps for each power of two."""
    if value_us < 32:
        return value_us
    exponent = value_us.bit_length() - 6
    return 32 * exponent + (value_us >> exponent)
