"""Lives of groups: a month, shortened to some minutes, with everything that may happen in it. Drawn from a seed.

Times are in milliseconds since 1970, and in steps of ten.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

MINUTE_MS = 60_000
STEP_MS = 10
BEGIN_MS = 1_793_491_200_000  # a month's begin
STALL_MS = 500  # a chain that acknowledges later than this has lost the time
AWAY_MS = 750  # a process that stood still for longer has lost the time
QUIET_MINUTES_MAX = 400
GAP_MS_MIN = 100  # between appends: more would only take longer


@dataclass(frozen=True)
class Outage:
    """The head cannot accept appends in [from, to): its chain does not answer, or its process stands still."""

    from_ms: int
    to_ms: int
    kind: str  # chain, process


@dataclass(frozen=True)
class Reign:
    """The time of one head.

    `crashes`: it ends without a last report. `haunts_ms`: the server takes itself for the head so much longer, and
    reports that it cannot accept.
    """

    server: int
    epoch: int
    incarnation: str
    from_ms: int
    to_ms: int
    crashes: bool
    haunts_ms: int
    outages: tuple[Outage, ...]


@dataclass(frozen=True)
class Bounds:
    """The bound on latency until a time; the last one holds on."""

    until_ms: int | None
    size_bytes: int
    latency: str
    bound_us: int


@dataclass(frozen=True)
class Append:
    """A batch of entries that reaches the head. `latency_us`: from its order to its commitment."""

    at_ms: int
    entries: int
    timeout_ms: int
    latency_us: int


@dataclass(frozen=True)
class Declaration:
    """Minutes that an operator declares bad. `breaches`: durability or order; None: every measured clause."""

    from_minute: int
    to_minute: int
    breaches: str | None


@dataclass(frozen=True)
class Lost:
    """Telemetry that never arrives: of a reign's minute, all that was reported from a second of it on."""

    epoch: int
    minute: int
    from_second: int


@dataclass(frozen=True)
class Prober:
    """Somebody who looks from outside. `failed`: times in which a server did not answer it. `silent`: minutes of the
    life that it does not tell of."""

    name: str
    watches: frozenset[int]
    failed: tuple[tuple[int, int, int], ...]  # server, from, to; those of a server do not overlap
    silent: frozenset[int]

    def fails(self, server: int, number: int) -> list[tuple[int, int]]:
        """Times without an answer in a minute of the life, in ms since its begin."""
        begin_ms = BEGIN_MS + number * MINUTE_MS
        clipped = (
            (max(0, from_ms - begin_ms), min(MINUTE_MS, to_ms - begin_ms))
            for one, from_ms, to_ms in self.failed
            if one == server
        )
        return sorted((from_ms, to_ms) for from_ms, to_ms in clipped if from_ms < to_ms)


@dataclass(frozen=True)
class Life:
    seed: int
    rate_per_s: int
    durability: str
    availability_ppm: int
    active_ms: int
    deleted_ms: int | None
    end_ms: int  # the begin of a minute; nothing after it is judged
    reigns: tuple[Reign, ...]
    bounds: tuple[Bounds, ...]
    appends: tuple[Append, ...]
    declarations: tuple[Declaration, ...]
    lost: tuple[Lost, ...]
    probers: tuple[Prober, ...] = ()

    @property
    def minutes(self) -> range:
        return range((self.end_ms - BEGIN_MS) // MINUTE_MS)


# Bounds of latency by class and durability, as `docs/reference/sla.md` has them for two of its sizes.
TABLE_US = {
    ("standard", "in_memory"): {64: 2_000, 1_024: 10_000},
    ("standard", "persistent"): {64: 5_000, 1_024: 20_000},
    ("low", "in_memory"): {64: 1_000, 1_024: 4_000},
    ("low", "persistent"): {64: 2_500, 1_024: 8_000},
}


@dataclass
class _Draw:
    """A life that is being drawn."""

    random: random.Random
    active_ms: int
    end_ms: int
    reigns: list[Reign] = field(default_factory=list)

    def step(self, low_ms: int, high_ms: int) -> int:
        """A time in [low, high]."""
        return self.random.randrange(low_ms // STEP_MS, high_ms // STEP_MS + 1) * STEP_MS


def draw(seed: int) -> Life:
    chance = random.Random(seed)
    minutes = chance.randint(5, 12)
    quiet_minutes = chance.randint(5, QUIET_MINUTES_MAX) if chance.random() < 0.1 else 0
    active_ms = BEGIN_MS + chance.randrange(6_000) * STEP_MS
    end_ms = BEGIN_MS + (minutes + quiet_minutes) * MINUTE_MS
    drawn = _Draw(chance, active_ms, end_ms)
    deleted_ms = drawn.step(active_ms + 3 * MINUTE_MS, end_ms - 5_000) if chance.random() < 0.2 else None
    stop_ms = deleted_ms or end_ms
    _draw_reigns(drawn, stop_ms)
    durability = chance.choice(("in_memory", "persistent"))
    bounds = _draw_bounds(drawn, durability, stop_ms)
    rate_per_s = chance.choice((5, 10, 20, 50))
    busy_ms = _busy(drawn, stop_ms, quiet_minutes)
    return Life(
        seed,
        rate_per_s,
        durability,
        chance.choice((999_500, 999_900)),
        active_ms,
        deleted_ms,
        end_ms,
        tuple(drawn.reigns),
        bounds,
        tuple(_draw_appends(drawn, rate_per_s, busy_ms, bounds)),
        tuple(_draw_declarations(drawn, minutes)),
        tuple(_draw_lost(drawn)),
    )


def _draw_reigns(drawn: _Draw, stop_ms: int) -> None:
    """Heads, one after the other: each ends by a crash, by being cut off, or in order for a drain."""
    chance = drawn.random
    at_ms, epoch = drawn.active_ms, 1
    while at_ms < stop_ms:
        is_last = chance.random() < 0.6 or stop_ms - at_ms < 40_000
        end_ms = stop_ms if is_last else drawn.step(at_ms + 20_000, stop_ms - 10_000)
        crashes = not is_last and chance.random() < 0.6
        if not is_last and not crashes and chance.random() < 0.5:
            end_ms = end_ms // 1_000 * 1_000  # the successor may begin a moment later
        haunts_ms = drawn.step(5_000, 200_000) if not is_last and not crashes and chance.random() < 0.7 else 0
        outages = tuple(_draw_outages(drawn, at_ms, end_ms))
        incarnation = f"{chance.getrandbits(32):08x}"
        drawn.reigns.append(Reign(epoch % 3 + 1, epoch, incarnation, at_ms, end_ms, crashes, haunts_ms, outages))
        # A successor begins in a later second than that in which the former head last was able to commit.
        away_ms = drawn.step(0, 200) if chance.random() < 0.3 else drawn.step(300, 20_000)
        next_ms = -(-end_ms // 1_000) * 1_000 + away_ms
        if is_last or next_ms > stop_ms - 5_000:
            return
        at_ms, epoch = next_ms, epoch + chance.randint(1, 2)


def _draw_outages(drawn: _Draw, from_ms: int, to_ms: int) -> list[Outage]:
    """Apart from one another by seconds. One of a chain lies within a minute, as its samples do."""
    chance = drawn.random
    found: list[Outage] = []
    at_ms = from_ms + 3_000
    while chance.random() < 0.5 and at_ms + 20_000 < to_ms:
        kind = chance.choice(("chain", "chain", "process"))
        long = chance.random() < 0.3
        length_ms = drawn.step(1_000, 12_000) if long or kind == "process" else drawn.step(STALL_MS + 10, 900)
        begin_ms = drawn.step(at_ms, to_ms - length_ms - 3_000)
        in_minute_ms = begin_ms % MINUTE_MS
        if kind == "chain" and in_minute_ms + length_ms > MINUTE_MS - 2_000:
            begin_ms = begin_ms - in_minute_ms + max(0, MINUTE_MS - 2_000 - length_ms)
        if kind == "process":
            begin_ms, length_ms = _clear_of_minutes(begin_ms, length_ms)
        if begin_ms < at_ms or length_ms < STALL_MS + 10:
            return found
        found.append(Outage(begin_ms, begin_ms + length_ms, kind))
        at_ms = begin_ms + length_ms + 5_000
    return found


def _clear_of_minutes(begin_ms: int, length_ms: int) -> tuple[int, int]:
    """The outage with some seconds of it on each side of a minute's end, or all on one side."""
    left_ms = MINUTE_MS - begin_ms % MINUTE_MS
    if left_ms < 2_000:
        begin_ms, left_ms = begin_ms - 3_000, left_ms + 3_000
    elif left_ms == MINUTE_MS:
        begin_ms += STEP_MS  # else the head does not look at its counts at the minute's end
    if 0 <= length_ms - left_ms < 2_000:
        length_ms = left_ms - 1_000
    return begin_ms, length_ms


def _draw_bounds(drawn: _Draw, durability: str, stop_ms: int) -> tuple[Bounds, ...]:
    chance = drawn.random
    until: list[int | None] = sorted(drawn.step(drawn.active_ms, stop_ms) for _ in range(chance.choice((0, 0, 1, 2))))  # type: ignore[assignment]
    found = []
    for until_ms in [*dict.fromkeys(until), None]:
        latency, size = chance.choice(("standard", "low")), chance.choice((64, 1_024))
        found.append(Bounds(until_ms, size, latency, TABLE_US[latency, durability][size]))
    return tuple(found)


def _busy(drawn: _Draw, stop_ms: int, quiet_minutes: int) -> list[tuple[int, int]]:
    """Times with traffic. The last ones are quiet in a long life, and any may be in a short one."""
    chance = drawn.random
    end_ms = min(stop_ms, drawn.end_ms - quiet_minutes * MINUTE_MS)
    found, at_ms = [], drawn.active_ms + 100
    while at_ms < end_ms:
        until_ms = min(end_ms, at_ms + drawn.step(20_000, 400_000))
        found.append((at_ms, until_ms))
        at_ms = until_ms + (drawn.step(60_000, 300_000) if chance.random() < 0.4 else 0)
        if at_ms >= end_ms and quiet_minutes and stop_ms > at_ms + 3 * MINUTE_MS and chance.random() < 0.5:
            found.append((stop_ms - 2 * MINUTE_MS, stop_ms))  # traffic after the long quiet time
    return found


def _draw_appends(
    drawn: _Draw, rate_per_s: int, busy_ms: list[tuple[int, int]], bounds: tuple[Bounds, ...]
) -> list[Append]:
    """Traffic below, at and above the reservation, with minutes in which commits are slow."""
    chance = drawn.random
    found = []
    for from_ms, to_ms in busy_ms:
        asked = rate_per_s * chance.choice((0.3, 0.8, 1.0, 1.2, 2.0, 6.0))
        entries = chance.choice((1, 1, max(1, rate_per_s // 2), 2 * rate_per_s))
        entries = max(entries, -(-int(asked) * GAP_MS_MIN // 1_000))
        gap_ms = max(GAP_MS_MIN, int(1_000 * entries / asked) // STEP_MS * STEP_MS)
        timeout_ms = chance.choice((150, 1_000, 10_000))
        slow_share = chance.choice((0.0, 0.0, 0.005, 0.03))
        bound_us = chance.choice(bounds).bound_us
        at_ms = from_ms
        while at_ms < to_ms:
            # Clear of every bound by more than a histogram's error.
            factor = 1.2 if chance.random() < slow_share else 0.8
            latency_us = int(bound_us * factor)
            found.append(Append(at_ms, entries, timeout_ms, latency_us))
            at_ms += gap_ms if chance.random() < 0.9 else chance.randrange(1, 5) * gap_ms
    return found


def _draw_declarations(drawn: _Draw, minutes: int) -> list[Declaration]:
    chance = drawn.random
    found = []
    while chance.random() < 0.15:
        first = chance.randrange(minutes)
        last = min(minutes, first + chance.randint(1, 4))
        breaches = chance.choice((None, None, "durability", "order"))
        spanned = range(BEGIN_MS // MINUTE_MS + first, BEGIN_MS // MINUTE_MS + last)
        # Time that a report divides between two minutes is declared bad with both, or with none.
        outages = (outage for reign in drawn.reigns for outage in reign.outages)
        if breaches or not any(_is_across(outage, each) for outage in outages for each in spanned):
            found.append(Declaration(first, last, breaches))
    return found


def _draw_lost(drawn: _Draw) -> list[Lost]:
    chance = drawn.random
    if chance.random() < 0.5:
        return []
    found = []
    for former, reign in zip([None, *drawn.reigns], drawn.reigns, strict=False):
        first, last = (at_ms // MINUTE_MS for at_ms in (reign.from_ms, reign.to_ms))
        if former is not None and former.haunts_ms and not reign.outages:
            # The former head alone reports of some minutes.
            found += [Lost(reign.epoch, each, 0) for each in range(first + 1, min(last, first + 3))]
        for _ in range(chance.randint(0, 3)):
            minute = chance.randint(first, last)
            lost = range(minute, min(last + 1, minute + chance.choice((1, 2, 5, 100))))
            from_second = chance.choice((0, 0, 0, 20, 59))
            # Time that a report divides between two minutes arrives with both, or with none.
            if not any(_is_across(outage, each) for outage in reign.outages for each in lost):
                found += [Lost(reign.epoch, each, from_second) for each in lost]
    return found


def _is_across(outage: Outage, minute: int) -> bool:
    first, last = outage.from_ms // MINUTE_MS, outage.to_ms // MINUTE_MS
    return first != last and first <= minute <= last
