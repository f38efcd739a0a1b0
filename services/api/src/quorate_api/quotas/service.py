"""Quotas of an organization, checked under its row lock."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from quorate_api import limits
from quorate_api.access.permissions import Permission
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, invalid, not_found
from quorate_api.http.principal import Principal
from quorate_api.quotas.repository import QuotaRepository
from quorate_api.quotas.schemas import Quota, QuotaRequest, Quotas


@dataclass(frozen=True, slots=True)
class Definition:
    code: str
    default: int
    unit: str
    description: str
    used: Callable[[QuotaRepository, UUID | None], Awaitable[int]]
    # The default until an owner has verified an address. None: the same.
    unverified: int | None = None

    def limit(self, overrides: dict[str, int], *, verified: bool) -> int:
        usual = self.default if verified or self.unverified is None else self.unverified
        return overrides.get(self.code, usual)


PROJECTS = Definition(
    "projects",
    limits.PROJECTS_MAX,
    "project",
    "Projects",
    lambda quotas, _: quotas.projects(),
    limits.UNVERIFIED_PROJECTS,
)
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
    limits.UNVERIFIED_GROUPS_PER_PROJECT,
)
PARTITIONS_PER_PROJECT = Definition(
    "partitions_per_project",
    limits.PARTITIONS_PER_PROJECT_MAX,
    "partition",
    "Partitions of one project, beside the first of each group (the project with the most is shown)",
    QuotaRepository.partitions,
    limits.UNVERIFIED_PARTITIONS_PER_PROJECT,
)
TOTAL_RATE = Definition(
    "total_rate_per_s",
    limits.TOTAL_RATE_PER_S_MAX,
    "append/s",
    "Reserved appends per second of all groups",
    lambda quotas, _: quotas.rate_per_s(),
    limits.UNVERIFIED_TOTAL_RATE_PER_S,
)
TOTAL_READ_RATE = Definition(
    "total_read_rate_per_s",
    limits.TOTAL_READ_RATE_PER_S_MAX,
    "read/s",
    "Reserved reads per second of all groups",
    lambda quotas, _: quotas.read_rate_per_s(),
    limits.UNVERIFIED_TOTAL_READ_RATE_PER_S,
)
GUARANTEED_TOKENS = Definition(
    "total_guaranteed_tokens_per_s",
    limits.TOTAL_GUARANTEED_TOKENS_PER_S_MAX,
    "token/s",
    "Tokens per second that guarantees share among the groups of projects",
    lambda quotas, _: quotas.guaranteed_tokens_per_s(),
    limits.UNVERIFIED_GUARANTEED_TOKENS_PER_S,
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
    overrides, verified = await repository.overrides(), await repository.is_verified()
    limit = quota.limit(overrides, verified=verified)
    used = await quota.used(repository, project_id)
    if used + adding > limit:
        raise Problem(
            Code.QUOTA_EXCEEDED,
            f"The quota {quota.code} allows {limit}; {used} in use, {adding} more requested.{_more(verified)}",
        )
    if quota is TOTAL_RATE and not verified and quota.code not in overrides:
        await _check_strangers(repository, adding)


async def _check_strangers(repository: QuotaRepository, adding: int) -> None:
    """Organizations without a verified address share a small part of the fleet."""
    await repository.lock_strangers()  # each holds the lock of its own organization alone
    used = await repository.unverified_rate_per_s()
    if used + adding > limits.UNVERIFIED_FLEET_RATE_PER_S:
        raise Problem(Code.QUOTA_EXCEEDED, f"Trials without a verified address have no room left now.{_more(False)}")


def _more(verified: bool) -> str:
    return "" if verified else " It is greater once you have verified your e-mail address."


def by_code(code: str) -> Definition:
    found = next((quota for quota in DEFINITIONS if quota.code == code), None)
    if found is None:
        raise not_found("quota")
    return found


async def request(work: Work, principal: Principal, code: str, asked: QuotaRequest) -> Quotas:
    """Repeating it changes nothing."""
    user_id = principal.require_person()
    principal.require(Permission.ADMINISTER)
    quota = by_code(code)
    await lock(work)
    repository = QuotaRepository(work.scope)
    limit = quota.limit(await repository.overrides(), verified=await repository.is_verified())
    if asked.wanted <= limit:
        raise invalid("wanted", f"The quota is {limit}. Ask for more than that.")
    await repository.ask(code, asked.wanted, asked.reason, user_id, datetime.now(UTC))
    return await all_of(work)


async def withdraw(work: Work, principal: Principal, code: str) -> Quotas:
    principal.require_person()
    principal.require(Permission.ADMINISTER)
    by_code(code)
    if not await QuotaRepository(work.scope).end_request(code):
        raise not_found("request for this quota")
    return await all_of(work)


async def all_of(work: Work) -> Quotas:
    repository = QuotaRepository(work.scope)
    overrides, verified = await repository.overrides(), await repository.is_verified()
    requested = await repository.requested()
    return Quotas(
        items=[
            Quota(
                code=quota.code,
                description=quota.description,
                limit=quota.limit(overrides, verified=verified),
                used=await quota.used(repository, None),
                unit=quota.unit,
                is_default=quota.code not in overrides,
                requested=requested.get(quota.code),
            )
            for quota in DEFINITIONS
        ]
    )
