"""`/v1/projects/{id}/glance`."""

from datetime import UTC, datetime
from uuid import UUID

from fastapi import APIRouter

from quorate_api.access.permissions import Permission
from quorate_api.glances.repository import GlanceRepository
from quorate_api.glances.schemas import Glance, Glances
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.projects import service as projects

router = APIRouter(prefix="/v1/projects/{project_id}", tags=["reports"], route_class=ScopedRoute)

MINUTE_S = 60
DAY_S = 86_400


@router.get("/glance")
async def glance_at_project(project_id: UUID, work: Transaction, caller: Caller) -> Glances:
    """The use and health of all groups of a project, for lists."""
    caller.require(Permission.VIEW)
    await projects.visible(work, caller, project_id)
    now_s = int(datetime.now(UTC).timestamp())
    minute_s = now_s // MINUTE_S * MINUTE_S - MINUTE_S
    repository = GlanceRepository(work.scope)
    used = await repository.used(project_id, minute_s)
    bad = await repository.bad_minutes(project_id, now_s - DAY_S)
    return Glances(
        minute=datetime.fromtimestamp(minute_s, UTC),
        items=[
            Glance(
                group_id=group_id,
                appends_per_s=used.get(group_id, 0) / MINUTE_S,
                bad_minutes=bad.get(group_id, 0),
            )
            for group_id in sorted(used.keys() | bad.keys())
        ],
    )
