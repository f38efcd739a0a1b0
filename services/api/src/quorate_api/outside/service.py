"""Targets for probers, and their reports."""

from datetime import UTC, datetime

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.http.services import Services
from quorate_api.outside.repository import OutsideRepository
from quorate_api.outside.schemas import Looked, LookedMinute, Taken, Target, Targets
from quorate_api.outside.verdict import Look, Time
from quorate_api.telemetry.plausible import kept_from_s
from quorate_api.telemetry.windows import HOUR_S, WINDOW_S


async def targets(work: Work, services: Services) -> Targets:
    """Every server of the fleet, those that the coordinator takes for failed included."""
    async with work.outside():
        found = await services.coordinator.servers()
        ca_pem = await services.coordinator.authority_pem()
    servers = [Target(server_id=view.server_id, address=view.address) for view in found]
    return Targets(servers=servers, ca_pem=ca_pem)


async def take(work: Work, looked: Looked) -> Taken:
    now = datetime.now(UTC)
    latest_s = now.timestamp() + limits.INGEST_CLOCK_AHEAD_S_MAX - WINDOW_S
    for place, minute in enumerate(looked.minutes):
        if minute.minute_s > latest_s:
            text = "The minute is not over: the prober's clock is ahead."
            raise Problem(Code.VALIDATION_FAILED, errors=[FieldError(field=f"minutes.{place}.minute_s", message=text)])
    kept_s = kept_from_s(now.timestamp())
    looks = [_look(looked.prober, minute) for minute in looked.minutes if minute.minute_s >= kept_s]
    late_before_s = int(now.timestamp()) - HOUR_S - limits.ROLL_SETTLE_S + limits.PROBED_LATE_EARLY_S
    await OutsideRepository(work.connection).add(looks, now, late_before_s)
    return Taken(minutes=len(looks))


def _look(prober: str, minute: LookedMinute) -> Look:
    failed: dict[int, list[Time]] = {server: [] for server in minute.watched}
    begin_ms = minute.minute_s * 1_000
    for each in minute.failed:
        failed[each.server_id] = [(begin_ms + from_ms, begin_ms + to_ms) for from_ms, to_ms in each.times]
    return Look(prober, minute.minute_s, failed)
