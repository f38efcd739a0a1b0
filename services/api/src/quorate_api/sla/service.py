"""SLA reports, for the API and for the month's close."""

import asyncio
import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from math import inf
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.agreed.periods import period_at, periods
from quorate_api.coordinator.schemas import ObservedSla
from quorate_api.corrections.correction import BadSpan
from quorate_api.corrections.repository import CorrectionRepository, breached_by
from quorate_api.database.scope import Scope
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.groups import service as groups
from quorate_api.groups.repository import GroupRepository
from quorate_api.heads.repository import HeadRepository, Span
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.months.calendar import month_end
from quorate_api.outside.repository import OutsideRepository
from quorate_api.outside.verdict import Unreachable
from quorate_api.promises.availability import PPM
from quorate_api.sla import calculator
from quorate_api.sla.budget import Span as Time
from quorate_api.sla.budget import budget
from quorate_api.sla.declared import declared
from quorate_api.sla.lifetime import judged_span
from quorate_api.sla.losses import Change, losses
from quorate_api.sla.minutes import Minute, judge
from quorate_api.sla.promise import Promise
from quorate_api.sla.repository import SlaRepository
from quorate_api.sla.schemas import (
    BurnRates,
    ClauseReport,
    ErrorBudget,
    SlaBreach,
    SlaCorrection,
    SlaIncident,
    SlaMinute,
    SlaPeriod,
    SlaReport,
)
from quorate_api.sla.tally import Tally, summed, tally
from quorate_api.sla.targets import AVAILABILITY, DURABILITY, DURABLE_DEGREE_MIN, LATENCY, QUIET_S_MAX
from quorate_api.telemetry.windows import HOUR_S, WINDOW_S, Window

INCIDENTS_MAX = 500
LOST_REASON = "The log was lost: no server has a copy of it."


def month_bounds(month: str | None, now: datetime) -> tuple[datetime, datetime]:
    """First instants of the month (UTC) and of the next; the current month when None."""
    month = month or f"{now:%Y-%m}"
    match = re.fullmatch(r"(20\d\d)-(0[1-9]|1[0-2])", month, re.ASCII)
    if match is None:
        raise Problem(
            Code.VALIDATION_FAILED, errors=[FieldError(field="month", message="Must be YYYY-MM, as in 2026-11.")]
        )
    start = datetime(int(match[1]), int(match[2]), 1, tzinfo=UTC)
    return start, month_end(start)


async def measure(scope: Scope, group: Row[Any], start: datetime, end: datetime, now: datetime) -> calculator.Report:
    """Measure the part of [start, end) in which the group was active and whose minutes are over.

    `start` and `end` begin days. Judged hours count as they were judged, and the others by their windows. Minutes that
    an operator declared bad are bad.
    """
    former = await GroupRepository(scope).former_slas(group.id)
    return await _measured(scope, group, former, start, end, now, await _corrections(scope, group, start, end))


async def _corrections(scope: Scope, group: Row[Any], start: datetime, end: datetime) -> list[Row[Any]]:
    return await CorrectionRepository(scope).bad_spans(group.id, int(start.timestamp()), int(end.timestamp()))


async def _measured(
    scope: Scope,
    group: Row[Any],
    former: list[Row[Any]],
    start: datetime,
    end: datetime,
    now: datetime,
    corrections: list[Row[Any]],
) -> calculator.Report:
    from_s, to_s = int(start.timestamp()), int(end.timestamp())
    sla = SlaRepository(scope)
    known, tallies = await sla.judged(group.id, from_s, to_s)
    bad = [
        minute for minute in await sla.bad_minutes(group.id, from_s, to_s) if minute.start_s // HOUR_S * HOUR_S in known
    ]
    spans = [Span(group.id, *hours) for hours in _unjudged(known, from_s, min(to_s, settled_s(now)))]
    windows = await HeadRepository(scope).around(spans, QUIET_S_MAX)
    outside = await OutsideRepository(scope.connection).unreachable([(span.from_s, span.to_s) for span in spans])
    spans_bad = [BadSpan(row.start_s, row.end_s, row.reason, breached_by(row.kind)) for row in corrections]
    spans_bad += await _losses(scope, group, former, start, end)
    month = judged_span(group, from_s * 1_000, min(to_s, settled_s(now)) * 1_000)
    promise = Promise.of_group(group, former)
    # Other requests go on meanwhile.
    return await asyncio.to_thread(_concluded, group, promise, tallies, bad, windows, outside, spans_bad, month, now)


async def _losses(
    scope: Scope, group: Row[Any], former: list[Row[Any]], start: datetime, end: datetime
) -> list[BadSpan]:
    """The minutes in [start, end) in which the group's log was lost under an SLA that promises its durability."""
    changes = await GroupRepository(scope).since_lost(group.id, start, end)
    if not changes:
        return []
    found = periods(group, former)
    lost = [at for at in losses(Change(row.at, row.kind, row.status) for row in changes) if at < end]
    begins = sorted(
        {
            int(at.timestamp()) // WINDOW_S * WINDOW_S
            for at in lost
            if period_at(found, at).sla["replication_degree"] >= DURABLE_DEGREE_MIN
        }
    )
    return [BadSpan(begin_s, begin_s + WINDOW_S, LOST_REASON, DURABILITY.name) for begin_s in begins]


def _unjudged(known: Collection[int], from_s: int, to_s: int) -> list[tuple[int, int]]:
    """Runs of hours in [from_s, to_s) that were not judged yet, each with its begin and end."""
    runs: list[tuple[int, int]] = []
    for hour_s in range(from_s, to_s, HOUR_S):
        if hour_s in known:
            continue
        if runs and runs[-1][1] == hour_s:
            runs[-1] = (runs[-1][0], hour_s + HOUR_S)
        else:
            runs.append((hour_s, hour_s + HOUR_S))
    return runs


def _concluded(
    group: Row[Any],
    promise: Promise,
    known: list[Tally],
    bad: list[Minute],
    windows: dict[Span, list[Window]],
    outside: Unreachable,
    spans_bad: list[BadSpan],
    span_ms: tuple[int, int],
    now: datetime,
) -> calculator.Report:
    tallies = list(known)
    for span, found in windows.items():
        until_s = min(span.to_s, settled_s(now))
        span_here = judged_span(group, span.from_s * 1_000, until_s * 1_000)
        judged = judge(found, *span_here, promise.latency_us_at, outside)
        tallies.append(tally(judged))
        bad += [minute for minute in judged.minutes if not minute.is_good]
    total, every_bad = declared(summed(tallies), bad, spans_bad, span_ms, promise)
    return calculator.concluded(total, every_bad, promise)


def settled_s(now: datetime) -> int:
    """The end of the last judged minute. The current minute is not judged yet."""
    return int((now.timestamp() - limits.TELEMETRY_SETTLE_S) // WINDOW_S * WINDOW_S)


def judged(
    windows: Iterable[Window], outside: Unreachable, group: Row[Any], start: datetime, end: datetime, now: datetime
) -> calculator.Report:
    """Measure as `measure` does, from windows that the caller has read, by the present SLA."""
    to_ms = min(int(end.timestamp()), settled_s(now)) * 1_000
    span = judged_span(group, int(start.timestamp()) * 1_000, to_ms)
    return calculator.report(windows, Promise.of(group.availability_ppm, [(inf, group.sla)]), *span, outside)


async def report(work: Work, principal: Principal, group_id: UUID, month: str | None) -> SlaReport:
    group = await groups.visible(work, principal, group_id, deleted=True)
    now = datetime.now(UTC)
    start, end = month_bounds(month, now)
    corrections = await _corrections(work.scope, group, start, end)
    former = await GroupRepository(work.scope).former_slas(group_id)
    measured = await _measured(work.scope, group, former, start, end, now, corrections)
    whole = judged_span(group, int(start.timestamp()) * 1_000, int(end.timestamp()) * 1_000)
    # Other requests go on meanwhile: a month may have 40,000 bad minutes.
    clauses = await asyncio.to_thread(_clauses, measured, whole, settled_s(now) * 1_000)
    return SlaReport(
        group_id=group_id,
        month=f"{start:%Y-%m}",
        periods=_promised(group, former, start, min(end, now)),
        minutes_counted=measured.minutes_counted,
        clauses=clauses,
        credit_percent=min(100, sum(clause.credit_percent for clause in clauses)),
        incidents=[
            SlaIncident(
                clause=incident.clause,
                start=datetime.fromtimestamp(incident.start_s, UTC),
                end=datetime.fromtimestamp(incident.end_s, UTC),
                minutes=(incident.end_s - incident.start_s) // WINDOW_S,
                reason=incident.reason,
            )
            for incident in measured.incidents[:INCIDENTS_MAX]
        ],
        corrections=[
            SlaCorrection(
                start=datetime.fromtimestamp(row.start_s, UTC),
                end=datetime.fromtimestamp(row.end_s, UTC),
                breaches=breached_by(row.kind),
                reason=row.reason,
                created_at=row.created_at,
            )
            for row in corrections
        ],
    )


async def bad_minutes(
    work: Work, principal: Principal, group_id: UUID, month: str | None, paging: Paging
) -> Page[SlaMinute]:
    group = await groups.visible(work, principal, group_id, deleted=True)
    now = datetime.now(UTC)
    measured = await measure(work.scope, group, *month_bounds(month, now), now)
    after_s = -1 if paging.after_number is None else paging.after_number
    left = [minute for minute in measured.bad_minutes if minute.start_s > after_s]
    found, cursor = paging.cut(left, lambda minute: minute.start_s)
    return Page(items=[_minute(minute, measured) for minute in found], next_cursor=cursor)


def _minute(minute: Minute, measured: calculator.Report) -> SlaMinute:
    return SlaMinute(
        at=datetime.fromtimestamp(minute.start_s, UTC),
        missed=[each.clause.name for each in measured.attainments if calculator.misses(minute, each.clause)],
        elapsed_ms=minute.elapsed_ms,
        active_ms=minute.active_ms,
        unreachable_ms=minute.unreachable_ms,
        measured=minute.measured,
        throttled_within_sla_entries=minute.throttled_within_sla_entries,
        within_sla_entries=minute.within_sla_entries,
        late_read_entries=minute.late_read_entries,
        owed_read_entries=minute.owed_read_entries,
        p99_us=minute.p99_us,
        target_p99_us=minute.target_us,
        declared=minute.declared,
        breaches=[SlaBreach(clause=clause, reason=reason) for clause, reason in minute.breaches],
    )


def _promised(group: Row[Any], former: list[Row[Any]], start: datetime, end: datetime) -> list[SlaPeriod]:
    """The parts of [start, end), each with the group's SLA in it."""
    end = min(end, group.delete_requested_at or end)
    found = []
    for period in periods(group, former):
        if period.start is None:
            continue
        since, until = max(start, period.start), min(end, period.end or end)
        if since < until:
            found.append(SlaPeriod(start=since, end=until, sla=ObservedSla(**period.sla)))
    return found


def _clauses(measured: calculator.Report, whole: Time, settled_ms: int) -> list[ClauseReport]:
    return [_clause(measured, attainment, whole, settled_ms) for attainment in measured.attainments]


def _clause(
    measured: calculator.Report, attainment: calculator.Attainment, whole: Time, settled_ms: int
) -> ClauseReport:
    clause = attainment.clause
    own = budget(measured, clause, whole, settled_ms)
    return ClauseReport(
        clause=clause.name,
        target=clause.target_ppm / PPM,
        attained=None if attainment.attained_ppm is None else attainment.attained_ppm / PPM,
        good_minutes=attainment.good_minutes,
        bad_minutes=attainment.bad_minutes,
        met=attainment.met,
        credit_percent=attainment.credit_percent,
        error_budget=ErrorBudget(
            unit=own.unit,
            allowed=own.allowed,
            used=own.used,
            left=own.left,
            burn_rates=BurnRates(hour=own.burn_hour, six_hours=own.burn_six_hours, month=own.burn_month),
        ),
        target_p99_us=measured.latency_target_us if clause is LATENCY else None,
        p99_us=measured.p99_us if clause is LATENCY else None,
        active_ms=measured.active_ms if clause.name == AVAILABILITY.name else None,
        elapsed_ms=measured.elapsed_ms if clause.name == AVAILABILITY.name else None,
    )
