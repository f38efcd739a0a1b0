"""Minutes that operators declared bad, laid over what was judged. Pure.

Judged hours stay as they are, also those whose windows are gone. A minute that is not among the bad ones was good in
every clause, so its part in the sums is known, but for pauses too short to make it bad: all of it counts as active.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from quorate_api.corrections.correction import BadSpan
from quorate_api.sla.minutes import Minute, counted
from quorate_api.sla.tally import Tally


def declared(
    total: Tally, bad: Iterable[Minute], spans: Sequence[BadSpan], span_ms: tuple[int, int], target_us: int
) -> tuple[Tally, list[Minute]]:
    """The sums of minutes in [from, to), and the bad ones among them, oldest first, with those of `spans` as bad.

    `span_ms`: the part that was judged, from which all `bad` are.
    """
    found = {minute.start_s: minute for minute in bad}
    for start_s, (elapsed_ms, reason) in _declared_minutes(spans, span_ms).items():
        was = found.get(start_s) or Minute(start_s, elapsed_ms, elapsed_ms, True, 0, 0, None)
        total = replace(
            total,
            active_ms=max(0, total.active_ms - was.active_ms),
            available_minutes=total.available_minutes - was.is_available,
            unthrottled_minutes=total.unthrottled_minutes - was.is_unthrottled,
            timely_minutes=total.timely_minutes - was.is_timely(target_us),
        )
        found[start_s] = replace(was, active_ms=0, declared=reason)
    return total, [found[start_s] for start_s in sorted(found)]


def _declared_minutes(spans: Iterable[BadSpan], span_ms: tuple[int, int]) -> Mapping[int, tuple[int, str]]:
    """Length and reason of each declared minute, by its begin. The first of several reasons counts."""
    from_ms, to_ms = span_ms
    found: dict[int, tuple[int, str]] = {}
    for span in spans:
        # Whole minutes of the span, each as long as it was judged.
        first_ms, last_ms = max(from_ms, span.start_s * 1_000), min(to_ms, span.end_s * 1_000)
        for start_s, elapsed_ms in counted(first_ms, last_ms) if first_ms < last_ms else ():
            found.setdefault(start_s, (elapsed_ms, span.reason))
    return found
