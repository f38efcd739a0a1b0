"""SLA reports, for the API and for the month's close."""

import asyncio
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.coordinator.schemas import ObservedSla
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.groups import service as groups
from quorate_api.groups.periods import periods
from quorate_api.groups.repository import GroupRepository
from quorate_api.http.principal import Permission, Principal
from quorate_api.sla import calculator
from quorate_api.sla.schemas import ClauseReport, SlaIncident, SlaPeriod, SlaReport
from quorate_api.sla.targets import AVAILABILITY, LATENCY, PPM
from quorate_api.telemetry.windows import WINDOW_S, Window
from quorate_api.usage.repository import UsageRepository

EDGE_S = 24 * 3_600  # windows are read beyond the period, to judge gaps at its edges
INCIDENTS_MAX = 500


def month_bounds(month: str | None, now: datetime) -> tuple[datetime, datetime]:
    """First instants of the month (UTC) and of the next; the current month when None."""
    month = month or f"{now:%Y-%m}"
    match = re.fullmatch(r"(20\d\d)-(0[1-9]|1[0-2])", month, re.ASCII)
    if match is None:
        raise Problem(
            Code.VALIDATION_FAILED, errors=[FieldError(field="month", message="Must be YYYY-MM, as in 2026-11.")]
        )
    start = datetime(int(match[1]), int(match[2]), 1, tzinfo=UTC)
    return start, (start + timedelta(days=31)).replace(day=1)


async def measure(
    repository: UsageRepository, group: Row[Any], start: datetime, end: datetime, now: datetime
) -> calculator.Report:
    """Measure the part of [start, end) in which the group was active and whose minutes are over."""
    windows = await repository.windows(group.id, int(start.timestamp()) - EDGE_S, int(end.timestamp()) + EDGE_S)
    # Other requests go on meanwhile.
    return await asyncio.to_thread(judged, windows, group, start, end, now)


def settled_s(now: datetime) -> int:
    """The end of the last judged minute. The current minute is not judged yet."""
    return int((now.timestamp() - limits.TELEMETRY_SETTLE_S) // WINDOW_S * WINDOW_S)


def judged(
    windows: Iterable[Window], group: Row[Any], start: datetime, end: datetime, now: datetime
) -> calculator.Report:
    """As `measure`, from windows that the caller has read."""
    begun = max(start, group.active_at) if group.active_at else end
    # A deleted group's last minute ends with the group.
    stop_ms = min(_ms(end), settled_s(now) * 1_000)
    if group.delete_requested_at is not None:
        stop_ms = min(stop_ms, _ms(group.delete_requested_at))
    begun_ms = _ms(begun)
    return calculator.report(windows, group.sla["durability"], begun_ms, max(begun_ms, stop_ms))


async def report(work: Work, principal: Principal, group_id: UUID, month: str | None) -> SlaReport:
    group = await groups.visible(work, principal, group_id, deleted=True)
    principal.require(Permission.VIEW)
    now = datetime.now(UTC)
    start, end = month_bounds(month, now)
    measured = await measure(UsageRepository(work.scope), group, start, end, now)
    clauses = [_clause(measured, attainment) for attainment in measured.attainments]
    return SlaReport(
        group_id=group_id,
        month=f"{start:%Y-%m}",
        periods=_promised(group, await GroupRepository(work.scope).former_slas(group_id), start, min(end, now)),
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


def _clause(measured: calculator.Report, attainment: calculator.Attainment) -> ClauseReport:
    clause = attainment.clause
    return ClauseReport(
        clause=clause.name,
        target=clause.target_ppm / PPM,
        attained=None if attainment.attained_ppm is None else attainment.attained_ppm / PPM,
        good_minutes=attainment.good_minutes,
        bad_minutes=attainment.bad_minutes,
        met=attainment.met,
        credit_percent=attainment.credit_percent,
        target_p99_us=measured.latency_target_us if clause is LATENCY else None,
        p99_us=measured.p99_us if clause is LATENCY else None,
        active_ms=measured.active_ms if clause is AVAILABILITY else None,
        elapsed_ms=measured.elapsed_ms if clause is AVAILABILITY else None,
    )


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1_000)
