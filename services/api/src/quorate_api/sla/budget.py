"""The error budget of each clause in a month: how much it may miss, how much it has missed, and how fast. Pure.

A burn rate is the missed share of some time over the share that the target allows. At 1 the budget lasts for exactly
the time in which the SLA is in force.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from quorate_api.promises.availability import PPM
from quorate_api.sla.calculator import Report, misses
from quorate_api.sla.minutes import WINDOW_MS, Minute
from quorate_api.sla.targets import AVAILABILITY, RESOLUTION_MS, Clause

HOUR_MS = 3_600_000
Unit = Literal["ms", "minutes"]
Span = tuple[int, int]  # [from, to) in milliseconds


@dataclass(frozen=True, slots=True)
class Budget:
    """Amounts are in `unit`: time for availability, minutes for the others.

    A rate is None if nothing was counted, or nothing may be missed.
    """

    unit: Unit
    allowed: int
    used: int
    burn_hour: float | None
    burn_six_hours: float | None
    burn_month: float | None

    @property
    def left(self) -> int:
        """Below 0 once the month can meet its target no more."""
        return self.allowed - self.used


def budget(report: Report, clause: Clause, whole: Span, settled_ms: int) -> Budget:
    """The clause's budget in a month.

    `whole`: the part of the month in which the SLA is in force, also the part to come. `settled_ms`: the end of the
    last judged minute of any group. `report` is of `whole` until then.
    """
    unit: Unit = "ms" if clause.name == AVAILABILITY.name else "minutes"
    so_far = (whole[0], min(whole[1], settled_ms))
    bad = [minute for minute in report.bad_minutes if misses(minute, clause)]
    used = _missed(bad, clause, so_far)

    def burn(span: Span) -> float | None:
        missed = used if span == so_far else _missed(bad, clause, span)
        return _burn(clause, missed, _counted(span)[unit])

    hour, six_hours = (_within(whole, (settled_ms - hours * HOUR_MS, settled_ms)) for hours in (1, 6))
    allowed = _counted(whole)[unit] * (PPM - clause.target_ppm) // PPM
    return Budget(unit, allowed, used, burn(hour), burn(six_hours), burn(so_far))


def _burn(clause: Clause, missed: int, counted: int) -> float | None:
    allowed_ppm = PPM - clause.target_ppm
    return round(missed * PPM / (counted * allowed_ppm), 3) if counted and allowed_ppm else None


def _missed(bad: Iterable[Minute], clause: Clause, span: Span) -> int:
    """`bad`: minutes that miss the clause."""
    within = [minute for minute in bad if _overlaps(minute, span)]
    if clause.name == AVAILABILITY.name:
        return sum(minute.elapsed_ms - minute.active_ms for minute in within)
    return len(within)


def _overlaps(minute: Minute, span: Span) -> bool:
    start_ms = minute.start_s * 1_000
    return start_ms < span[1] and start_ms + WINDOW_MS > span[0]


def _within(whole: Span, span: Span) -> Span:
    begun = max(whole[0], span[0])
    return begun, max(begun, min(whole[1], span[1]))


def _counted(span: Span) -> dict[Unit, int]:
    """Minutes and time that `judge` counts in the span. It leaves out an end of less than telemetry's resolution."""
    from_ms, to_ms = span
    if from_ms >= to_ms:
        return {"ms": 0, "minutes": 0}
    first_ms, last_ms = (at // WINDOW_MS * WINDOW_MS for at in (from_ms, to_ms - 1))
    minutes, elapsed_ms = (last_ms - first_ms) // WINDOW_MS + 1, to_ms - from_ms
    ends = [min(first_ms + WINDOW_MS, to_ms) - from_ms]
    if last_ms > first_ms:
        ends.append(to_ms - last_ms)
    short = [end for end in ends if end < RESOLUTION_MS]
    return {"ms": elapsed_ms - sum(short), "minutes": minutes - len(short)}
