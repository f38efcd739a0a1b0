"""Quotas of an organization, checked under its row lock."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.quotas.repository import QuotaRepository
from quorate_api.quotas.schemas import Quota, Quotas


@dataclass(frozen=True, slots=True)
class Definition:
    code: str
    default: int
    unit: str
    description: str
    used: Callable[[QuotaRepository, UUID | None], Awaitable[int]]


PROJECTS = Definition("projects", limits.PROJECTS_MAX, "project", "Projects", lambda quotas, _: quotas.projects())
KEYS_PER_PROJECT = Definition(
    "keys_per_project",
    limits.KEYS_PER_PROJECT_MAX,
    "key",
    "API keys of one project (the project with the most is shown)",
    QuotaRepository.keys,
)
GROUPS_PER_PROJECT = Definition(
    "groups_per_project",
    limits.GROUPS_PER_PROJECT_MAX,
    "group",
    "Groups of one project (the project with the most is shown)",
    QuotaRepository.groups,
)
PARTITIONS_PER_PROJECT = Definition(
    "partitions_per_project",
    limits.PARTITIONS_PER_PROJECT_MAX,
    "partition",
    "Partitions of one project, beside the first of each group (the project with the most is shown)",
    QuotaRepository.partitions,
)
TOTAL_RATE = Definition(
    "total_rate_per_s",
    limits.TOTAL_RATE_PER_S_MAX,
    "append/s",
    "Reserved appends per second of all groups",
    lambda quotas, _: quotas.rate_per_s(),
)
TOTAL_READ_RATE = Definition(
    "total_read_rate_per_s",
    limits.TOTAL_READ_RATE_PER_S_MAX,
    "read/s",
    "Reserved reads per second of all groups",
    lambda quotas, _: quotas.read_rate_per_s(),
)
GUARANTEED_TOKENS = Definition(
    "total_guaranteed_tokens_per_s",
    limits.TOTAL_GUARANTEED_TOKENS_PER_S_MAX,
    "token/s",
    "Tokens per second that guarantees share among the groups of projects",
    lambda quotas, _: quotas.guaranteed_tokens_per_s(),
)
DEFINITIONS = (
    PROJECTS,
    KEYS_PER_PROJECT,
    GROUPS_PER_PROJECT,
    PARTITIONS_PER_PROJECT,
    TOTAL_RATE,
    TOTAL_READ_RATE,
    GUARANTEED_TOKENS,
)


async def lock(work: Work) -> None:
    """Take turns with every request of the organization that counts against a quota, until the transaction ends."""
    await QuotaRepository(work.scope).lock()


async def check(work: Work, quota: Definition, *, adding: int, project_id: UUID | None = None) -> None:
    """Raises `quota_exceeded` if `adding` more would be too much. The caller holds `lock`."""
    repository = QuotaRepository(work.scope)
    limit = (await repository.overrides()).get(quota.code, quota.default)
    used = await quota.used(repository, project_id)
    if used + adding > limit:
        raise Problem(
            Code.QUOTA_EXCEEDED,
            f"The quota {quota.code} allows {limit}; {used} in use, {adding} more requested.",
        )


async def all_of(work: Work) -> Quotas:
    repository = QuotaRepository(work.scope)
    overrides = await repository.overrides()
    return Quotas(
        items=[
            Quota(
                code=quota.code,
                description=quota.description,
                limit=overrides.get(quota.code, quota.default),
                used=await quota.used(repository, None),
                unit=quota.unit,
            )
            for quota in DEFINITIONS
        ]
    )
