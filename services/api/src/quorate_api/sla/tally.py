"""Judged minutes in sum, as reports need them and hours keep them. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quorate_api.sla.minutes import Judged
from quorate_api.telemetry import histogram


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of minutes: all, and the good ones of each clause. Times are of all minutes together."""

    minutes: int = 0
    elapsed_ms: int = 0
    active_ms: int = 0
    available_minutes: int = 0
    unthrottled_minutes: int = 0
    timely_minutes: int = 0
    latency_us: Mapping[int, int] = field(default_factory=dict)  # bucket → count


COUNTS = tuple(name for name in Tally.__dataclass_fields__ if name != "latency_us")


def tally(judged: Judged) -> Tally:
    minutes = judged.minutes
    return Tally(
        len(minutes),
        sum(minute.elapsed_ms for minute in minutes),
        sum(minute.active_ms for minute in minutes),
        sum(minute.is_available for minute in minutes),
        sum(minute.is_unthrottled for minute in minutes),
        sum(minute.is_timely for minute in minutes),
        judged.latency_us,
    )


def summed(tallies: Iterable[Tally]) -> Tally:
    """All of them as one."""
    parts = list(tallies)
    counts = {name: sum(getattr(part, name) for part in parts) for name in COUNTS}
    return Tally(**counts, latency_us=histogram.merge(part.latency_us for part in parts))
