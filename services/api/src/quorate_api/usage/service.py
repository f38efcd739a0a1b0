"""Usage and metrics of a group."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from quorate_api import limits
from quorate_api.agreed.periods import periods, rate_at
from quorate_api.corrections.repository import CorrectionRepository
from quorate_api.corrections.schemas import CorrectionOfUsage
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.groups import service as groups
from quorate_api.groups.repository import GroupRepository
from quorate_api.http.principal import Principal
from quorate_api.partitioned.repository import PartitionedRepository
from quorate_api.pricing import prices
from quorate_api.telemetry.plausible import kept_from_s
from quorate_api.telemetry.windows import DAY_S, WINDOW_S
from quorate_api.totals.repository import TotalsRepository
from quorate_api.usage import calculator
from quorate_api.usage.repository import UsageRepository
from quorate_api.usage.schemas import Metrics, MetricsMinute, Usage, UsageMinute


async def usage(
    work: Work, principal: Principal, group_id: UUID, start: datetime | None, end: datetime | None
) -> Usage:
    """All partitions of the group count together."""
    await groups.visible(work, principal, group_id, deleted=True)
    now = datetime.now(UTC)
    end = _aware("to", end) or now + timedelta(seconds=WINDOW_S)
    start = _aware("from", start) or end - timedelta(days=1)
    from_s = calculator.minute_floor_s(start.timestamp())
    to_s = calculator.minute_floor_s(end.timestamp())
    if not from_s <= to_s <= from_s + limits.USAGE_MINUTES_MAX * WINDOW_S:
        message = f"Must be after `from`, by at most {limits.USAGE_MINUTES_MAX // 1440} days."
        raise Problem(Code.VALIDATION_FAILED, errors=[FieldError(field="to", message=message)])
    kept_s = kept_from_s(now.timestamp())
    if from_s < kept_s:
        message = f"Minutes are kept for {limits.USAGE_DAYS_KEPT} days: must not be before {_at(kept_s).isoformat()}."
        raise Problem(Code.VALIDATION_FAILED, errors=[FieldError(field="from", message=message)])
    day_s = from_s // DAY_S * DAY_S
    parts, corrections = [], []
    for member in await PartitionedRepository(work.scope).members(group_id):
        before = await TotalsRepository(work.scope).committed_before(member.id, day_s)
        counts = await UsageRepository(work.scope).counts(member.id, day_s, to_s, from_s)
        parts.append(calculator.used(counts, before))
        corrections += await _corrections(work, member.id, from_s, to_s)
    minutes = [minute for minute in calculator.summed(parts) if minute.start_s >= from_s]
    return Usage.model_construct(  # its numbers are the calculator's
        group_id=group_id,
        period_start=_at(from_s),
        period_end=_at(to_s),
        committed_entries=sum(minute.committed_entries for minute in minutes) + _sum(corrections, prices.APPENDS),
        committed_bytes=sum(minute.committed_bytes for minute in minutes),
        read_entries=sum(minute.read_entries for minute in minutes) + _sum(corrections, prices.READS),
        read_bytes=sum(minute.read_bytes for minute in minutes) + _sum(corrections, prices.EGRESS),
        minutes=[
            UsageMinute(
                _at(minute.start_s),
                minute.committed_entries,
                minute.committed_bytes,
                minute.read_entries,
                minute.read_bytes,
            )
            for minute in minutes
            if minute.committed_entries or minute.committed_bytes or minute.read_entries or minute.read_bytes
        ],
        corrections=corrections,
    )


async def _corrections(work: Work, group_id: UUID, from_s: int, to_s: int) -> list[CorrectionOfUsage]:
    """Of days that begin in [from_s, to_s), so that each is in one of adjacent periods."""
    first, last = (_at(-(-at_s // DAY_S) * DAY_S).date() for at_s in (from_s, to_s))
    found = await CorrectionRepository(work.scope).of_days(group_id, first, last)
    return [CorrectionOfUsage(**{name: getattr(row, name) for name in CorrectionOfUsage.model_fields}) for row in found]


def _sum(corrections: list[CorrectionOfUsage], kind: str) -> int:
    return sum(each.quantity for each in corrections if each.kind == kind)


async def metrics(work: Work, principal: Principal, group_id: UUID, minutes: int) -> Metrics:
    """All partitions of the group count together."""
    await groups.visible(work, principal, group_id, deleted=True)
    to_s = calculator.minute_floor_s(datetime.now(UTC).timestamp()) + WINDOW_S
    from_s = to_s - minutes * WINDOW_S
    repository = UsageRepository(work.scope)
    day_s = from_s // DAY_S * DAY_S
    parts, had = [], []
    for member in await PartitionedRepository(work.scope).members(group_id):
        before = await TotalsRepository(work.scope).committed_before(member.id, day_s)
        before = calculator.reached(await repository.counts(member.id, day_s, from_s, from_s), before)
        parts.append((await repository.windows(member.id, from_s, to_s), before))
        had.append(periods(member, await GroupRepository(work.scope).former_slas(member.id)))
    found = calculator.measured(parts)
    return Metrics(
        group_id=group_id,
        minutes=[
            MetricsMinute(
                at=_at(minute.start_s),
                reserved_per_s=sum(rate_at(each, minute.start_s) for each in had),
                offered_per_s=minute.offered_entries / WINDOW_S,
                committed_per_s=minute.committed_entries / WINDOW_S,
                throttled_per_s=minute.throttled_entries / WINDOW_S,
                p50_us=minute.p50_us,
                p99_us=minute.p99_us,
            )
            for minute in found
        ],
    )


def _aware(name: str, at: datetime | None) -> datetime | None:
    """Years far away overflow timestamps; times without a zone are ambiguous."""
    if at is None:
        return None
    if at.tzinfo is None or not 2000 <= at.year <= 2200:
        message = "Must be RFC 3339 with a time zone, as in 2026-11-20T12:00:00Z, between 2000 and 2200."
        raise Problem(Code.VALIDATION_FAILED, errors=[FieldError(field=name, message=message)])
    return at


def _at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
