"""Hours of groups are judged once they are over, so that a report does not judge a month of windows."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from uuid import UUID

from quorate_api.database.scope import EveryOrganization
from quorate_api.sla.lifetime import judged_span
from quorate_api.sla.minutes import Minute, judge
from quorate_api.sla.repository import HOUR_S, Hour, Life, SlaRepository
from quorate_api.sla.tally import Tally, tally
from quorate_api.sla.targets import LATENCY_P99_US, QUIET_S_MAX
from quorate_api.telemetry.windows import WINDOW_S, Window
from quorate_api.usage.repository import Span, UsageRepository


async def judge_hours(scope: EveryOrganization, hours: Iterable[Hour], before_s: int) -> None:
    """Judge these hours anew, and those before `before_s` that a gap in the telemetry shares with them.

    A head that reports after a gap shows whether the group had traffic in it, also in the hours before.
    """
    due = set(hours)
    sla, usage = SlaRepository(scope), UsageRepository(scope)
    await sla.lock(group_id for group_id, _ in due)
    found = await usage.heads_around(_spans(due), QUIET_S_MAX)
    others = {hour for hour in _with_gaps(found) if hour[1] < before_s} - due
    found |= await usage.heads_around(_spans(others), QUIET_S_MAX)
    lives = await sla.lives({group_id for group_id, _ in due})
    judged: dict[Hour, tuple[UUID, Tally, list[Minute]]] = {}
    for group_id, hour_s in due | others:
        life = lives.get(group_id)
        if life is None or life.active_at is None:
            continue
        windows = found[Span(group_id, hour_s, hour_s + HOUR_S)]
        judged[group_id, hour_s] = (life.organization_id, *_judged(windows, life, hour_s))
    await sla.store(judged)


def _judged(windows: list[Window], life: Life, hour_s: int) -> tuple[Tally, list[Minute]]:
    target_us = LATENCY_P99_US[life.durability]
    found = judge(windows, *judged_span(life, hour_s * 1_000, (hour_s + HOUR_S) * 1_000))
    return tally(found, target_us), [minute for minute in found.minutes if not minute.is_good(target_us)]


def _spans(hours: Iterable[Hour]) -> list[Span]:
    return [Span(group_id, hour_s, hour_s + HOUR_S) for group_id, hour_s in sorted(hours)]


def _with_gaps(found: Mapping[Span, list[Window]]) -> set[Hour]:
    """Hours with minutes without a head's window, between two that have one."""
    hours = set()
    for span, windows in found.items():
        here = sorted({window.window_start_s for window in windows})
        for before_s, after_s in pairwise(here):
            gap = range(before_s + WINDOW_S, after_s, WINDOW_S)
            hours |= {(span.group_id, start_s // HOUR_S * HOUR_S) for start_s in gap}
    return hours
