"""Quotas: what an organization may have at most. Checked under the organization's row lock."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.groups.repository import GroupRepository
from quorate_api.keys.repository import KeyRepository
from quorate_api.projects.repository import ProjectRepository
from quorate_api.quotas.repository import QuotaRepository
from quorate_api.quotas.schemas import Quota, Quotas


@dataclass(frozen=True, slots=True)
class Definition:
    code: str
    default: int
    unit: str
    description: str
    used: Callable[[Work, UUID | None], Awaitable[int]]


def _projects(work: Work, _project_id: UUID | None) -> Awaitable[int]:
    return ProjectRepository(work.scope).count()


def _keys(work: Work, project_id: UUID | None) -> Awaitable[int]:
    return KeyRepository(work.scope).count(project_id)


def _groups(work: Work, project_id: UUID | None) -> Awaitable[int]:
    return GroupRepository(work.scope).count(project_id)


def _rate(work: Work, _project_id: UUID | None) -> Awaitable[int]:
    return GroupRepository(work.scope).total_rate_per_s()


PROJECTS = Definition("projects", limits.PROJECTS_MAX, "project", "Projects", _projects)
KEYS_PER_PROJECT = Definition(
    "keys_per_project", limits.KEYS_PER_PROJECT_MAX, "key", "API keys of one project (the fullest is shown)", _keys
)
GROUPS_PER_PROJECT = Definition(
    "groups_per_project",
    limits.GROUPS_PER_PROJECT_MAX,
    "group",
    "Groups of one project (the fullest is shown)",
    _groups,
)
TOTAL_RATE = Definition(
    "total_rate_per_s", limits.TOTAL_RATE_PER_S_MAX, "append/s", "Reserved appends per second, all groups", _rate
)
DEFINITIONS = (PROJECTS, KEYS_PER_PROJECT, GROUPS_PER_PROJECT, TOTAL_RATE)


async def check(work: Work, quota: Definition, *, adding: int, project_id: UUID | None = None) -> None:
    """Raises `quota_exceeded` if `adding` more would be too much."""
    limit = (await QuotaRepository(work.scope).overrides()).get(quota.code, quota.default)
    used = await quota.used(work, project_id)
    if used + adding > limit:
        raise Problem(
            Code.QUOTA_EXCEEDED,
            f"The quota {quota.code} allows {limit}; {used} in use, {adding} more asked for.",
        )


async def all_of(work: Work) -> Quotas:
    overrides = await QuotaRepository(work.scope).overrides()
    return Quotas(
        items=[
            Quota(
                code=quota.code,
                description=quota.description,
                limit=overrides.get(quota.code, quota.default),
                used=await quota.used(work, None),
                unit=quota.unit,
            )
            for quota in DEFINITIONS
        ]
    )
