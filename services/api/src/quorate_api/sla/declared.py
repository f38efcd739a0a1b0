"""Minutes that are bad whatever telemetry measured, laid over what was judged. Pure.

Judged hours stay as they are, also those whose windows are gone. A minute that is not among the bad ones was good in
every measured clause, so its part in the sums is known, but for pauses too short to make it bad: all of it counts as
active. Clauses that telemetry does not measure have no part in the sums.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from quorate_api.corrections.correction import BadSpan
from quorate_api.sla.minutes import Minute, counted
from quorate_api.sla.promise import Promise
from quorate_api.sla.tally import Tally


def declared(
    total: Tally, bad: Iterable[Minute], spans: Sequence[BadSpan], span_ms: tuple[int, int], promise: Promise
) -> tuple[Tally, list[Minute]]:
    """The sums of minutes in [from, to), and the bad ones among them, oldest first, with those of `spans` as bad.

    `span_ms`: the part that was judged, from which all `bad` are. The first of several declared reasons counts.
    """
    found = {minute.start_s: minute for minute in bad}
    for span in spans:
        for start_s, elapsed_ms in _minutes(span, span_ms):
            was = found.get(start_s) or _good(start_s, elapsed_ms, promise)
            if span.breaches is not None:
                found[start_s] = replace(was, breaches=(*was.breaches, (span.breaches, span.reason)))
            elif was.declared is None:
                total = _without(total, was)
                found[start_s] = replace(was, active_ms=0, declared=span.reason)
    return total, [found[start_s] for start_s in sorted(found)]


def _good(start_s: int, elapsed_ms: int, promise: Promise) -> Minute:
    return Minute(start_s, elapsed_ms, elapsed_ms, True, 0, 0, None, promise.latency_us_at(start_s))


def _without(total: Tally, was: Minute) -> Tally:
    """The sums, in which the minute is good for nothing."""
    return replace(
        total,
        active_ms=max(0, total.active_ms - was.active_ms),
        available_minutes=total.available_minutes - was.is_available,
        unthrottled_minutes=total.unthrottled_minutes - was.is_unthrottled,
        timely_minutes=total.timely_minutes - was.is_timely,
    )


def _minutes(span: BadSpan, span_ms: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Whole minutes of the span, each with the length that was judged."""
    first_ms, last_ms = max(span_ms[0], span.start_s * 1_000), min(span_ms[1], span.end_s * 1_000)
    if first_ms < last_ms:
        yield from counted(first_ms, last_ms)
