"""The public status from measurements and incidents. It names no customer, no group and no server."""

from collections import defaultdict
from datetime import UTC, date, datetime
from uuid import UUID

from quorate_api import limits
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem, not_found
from quorate_api.http.services import Services
from quorate_api.promises.availability import PPM
from quorate_api.status import feed
from quorate_api.status.incidents import Told, Update
from quorate_api.status.repository import StatusRepository
from quorate_api.status.rules import COMPONENTS, DaySum, Sample, history, now_of, worst
from quorate_api.status.schemas import (
    Incident,
    IncidentUpdate,
    NewIncident,
    NewUpdate,
    Status,
    StatusComponent,
    StatusDay,
    StatusRegion,
)
from quorate_api.status.snapshot import Snapshot

Days = dict[tuple[str, str], list[DaySum]]


async def status(services: Services) -> Status:
    """The status. It is answered without a database too, then with what was known before."""
    seen: Snapshot | None = await services.status.seen()
    answers = services.status.answers
    now = datetime.now(UTC)
    if seen is None:
        return Status(at=now, state="unknown" if answers else "outage", regions=[], incidents=[])
    days: Days = defaultdict(list)
    for one in seen.days:
        days[one.region, one.component].append(one)
    regions = [_region(sample, days, now, answers=answers) for sample in seen.samples]
    return Status(
        at=seen.at,
        state=worst(region.state for region in regions) if answers else "outage",
        regions=regions,
        incidents=[_incident(told) for told in seen.incidents],
    )


async def incident(services: Services, incident_id: UUID) -> Incident:
    for told in (await _known(services)).incidents:
        if told.id == incident_id:
            return _incident(told)
    async with Work(services.engine) as work:
        found = await StatusRepository(work.connection).incident(incident_id)
    if found is None:
        raise not_found("incident")
    return _incident(found)


async def atom(services: Services) -> bytes:
    seen = await _known(services)
    return feed.atom(seen.incidents, services.settings.origin, seen.at)


async def open_incident(work: Work, services: Services, asked: NewIncident) -> Incident:
    repository = StatusRepository(work.connection)
    known = [sample.region for sample in await repository.samples()]
    unknown = sorted(set(asked.regions or []) - set(known))
    if unknown or not known:
        has = f"Regions: {', '.join(known)}." if known else "The worker has seen no region yet."
        message = f"There is no region {', '.join(unknown)}. {has}" if unknown else has
        raise Problem(Code.VALIDATION_FAILED, message, errors=[FieldError(field="regions", message=message)])
    now = datetime.now(UTC)
    first = Update(new_id(), now, asked.phase, asked.impact, asked.message)
    regions = tuple(known if asked.regions is None else asked.regions)
    told = Told(new_id(), asked.title, regions, tuple(asked.components), now, [first])
    await repository.open(told)
    services.status.forget()
    return _incident(told)


async def update_incident(work: Work, services: Services, incident_id: UUID, asked: NewUpdate) -> Incident:
    repository = StatusRepository(work.connection)
    had = await repository.incident(incident_id)
    if had is None:
        raise not_found("incident")
    impact = asked.impact or had.latest.impact
    await repository.add(incident_id, Update(new_id(), datetime.now(UTC), asked.phase, impact, asked.message))
    services.status.forget()
    found = await repository.incident(incident_id)
    assert found is not None, "incidents stay"
    return _incident(found)


async def _known(services: Services) -> Snapshot:
    seen: Snapshot | None = await services.status.seen()
    if seen is None:
        raise Problem(Code.DATABASE_UNAVAILABLE, retry_after_s=limits.STATUS_CACHED_S)
    return seen


def _region(sample: Sample, days: Days, now: datetime, *, answers: bool) -> StatusRegion:
    states = now_of(sample, now, database_answers=answers)
    components = []
    for component in COMPONENTS:
        past = history(days[sample.region, component], component, int(now.timestamp()), limits.STATUS_DAYS)
        components.append(
            StatusComponent(
                component=component,
                state=states[component].state,
                detail=states[component].detail,
                good_24h=_share(past.recent_ppm),
                good_90d=_share(past.whole_ppm),
                days=[StatusDay(day=_date(day.day_s), state=day.state, good=_share(day.good_ppm)) for day in past.days],
            )
        )
    return StatusRegion(
        region=sample.region, state=worst(component.state for component in components), components=components
    )


def _incident(told: Told) -> Incident:
    return Incident(
        id=told.id,
        title=told.title,
        regions=list(told.regions),
        components=list(told.components),
        impact=told.latest.impact,
        phase=told.latest.phase,
        opened_at=told.opened_at,
        resolved_at=told.resolved_at,
        updates=[
            IncidentUpdate(id=one.id, at=one.at, phase=one.phase, impact=one.impact, message=one.message)
            for one in told.updates
        ],
    )


def _share(ppm: int | None) -> float | None:
    return None if ppm is None else ppm / PPM


def _date(day_s: int) -> date:
    return datetime.fromtimestamp(day_s, UTC).date()
