"""Hours of groups are judged once they are over, so that a report does not judge a month of windows."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from uuid import UUID

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.heads.repository import HeadRepository, Span
from quorate_api.months.repository import MonthRepository
from quorate_api.outside.repository import OutsideRepository
from quorate_api.outside.verdict import Unreachable
from quorate_api.sla.lifetime import judged_span
from quorate_api.sla.minutes import Minute, judge
from quorate_api.sla.repository import Hour, Life, RegionHours, SlaRepository
from quorate_api.sla.tally import Tally, tally
from quorate_api.sla.targets import QUIET_S_MAX
from quorate_api.telemetry.windows import HOUR_S, WINDOW_S, Window


async def judge_hours(scope: EveryOrganization, hours: Iterable[Hour], before_s: int) -> None:
    """Judge these hours anew, and those before `before_s` that a gap in the telemetry shares with them.

    A head that reports after a gap shows whether the group had traffic in it, also in the hours before.
    """
    due = set(hours)
    group_ids = {group_id for group_id, _ in due}
    sla = SlaRepository(scope)
    await sla.lock(group_ids)
    lives = await sla.lives(group_ids)
    changes: RegionHours = defaultdict(lambda: (0, 0))
    gaps = await _judge(scope, due, lives, changes)
    again = {hour for hour in gaps - due if hour[1] < before_s}
    await _judge(scope, again, lives, changes)
    # Credits of months that are closed may grow by it.
    await MonthRepository(scope).note_judged(
        [(lives[group_id].organization_id, group_id, hour_s) for group_id, hour_s in due | again if group_id in lives]
    )
    # Last and in one order: workers wait for each other's rows here, and hold nothing else that the other may need.
    await sla.add_to_regions(changes)


async def _judge(
    scope: EveryOrganization, hours: set[Hour], lives: Mapping[UUID, Life], changes: RegionHours
) -> set[Hour]:
    """Judge and store hours, some at a time. Returns those that gaps in the telemetry reach into.

    Adds to `changes` what that changes in the sums of regions.
    """
    sla, heads = SlaRepository(scope), HeadRepository(scope)
    gaps: set[Hour] = set()
    left = sorted(hours - await sla.folded(hours))
    for start in range(0, len(left), limits.JUDGED_HOURS_MAX):
        some = left[start : start + limits.JUDGED_HOURS_MAX]
        found = await heads.around(_spans(some), QUIET_S_MAX)
        gaps |= _with_gaps(found)
        begins = {hour_s for _, hour_s in some}
        outside = await OutsideRepository(scope.connection).unreachable([(at_s, at_s + HOUR_S) for at_s in begins])
        # Other tasks of the worker go on meanwhile.
        judged = await asyncio.to_thread(_all_judged, some, found, outside, lives)
        _note_changes(changes, judged, await sla.counts(judged), lives)
        await sla.store(judged)
    return gaps


def _note_changes(
    changes: RegionHours,
    judged: Mapping[Hour, tuple[UUID, Tally, list[Minute]]],
    before: Mapping[Hour, tuple[int, int]],
    lives: Mapping[UUID, Life],
) -> None:
    """`before`: minutes and available ones of those hours that were judged before."""
    for (group_id, hour_s), (_, counted, _) in judged.items():
        minutes, available = before.get((group_id, hour_s), (0, 0))
        key = (lives[group_id].region, hour_s)
        had = changes[key]
        changes[key] = (had[0] + counted.minutes - minutes, had[1] + counted.available_minutes - available)


def _all_judged(
    hours: list[Hour], found: Mapping[Span, list[Window]], outside: Unreachable, lives: Mapping[UUID, Life]
) -> dict[Hour, tuple[UUID, Tally, list[Minute]]]:
    judged = {}
    for group_id, hour_s in hours:
        life = lives.get(group_id)
        if life is not None and life.active_at is not None:
            windows = found[Span(group_id, hour_s, hour_s + HOUR_S)]
            judged[group_id, hour_s] = (life.organization_id, *_judged(windows, outside, life, hour_s))
    return judged


def _judged(windows: list[Window], outside: Unreachable, life: Life, hour_s: int) -> tuple[Tally, list[Minute]]:
    span_ms = judged_span(life, hour_s * 1_000, (hour_s + HOUR_S) * 1_000)
    found = judge(windows, *span_ms, life.promise.latency_us_at, outside)
    return tally(found), [minute for minute in found.minutes if not minute.is_good]


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
