"""Changing a project's guarantee, in three steps: store the request, ask the coordinator, store the outcome.

When the coordinator's answer is lost, the request stays, and the next change or the worker asks again. The coordinator
applies each revision once. The price begins at the time at which it did.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.access.permissions import Permission
from quorate_api.coordinator.client import CoordinatorUnavailable, GuaranteeRefused, RequestInvalid
from quorate_api.coordinator.schemas import GuaranteeView
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.groups.repository import GroupRepository
from quorate_api.guaranteed.calculator import hourly_micros
from quorate_api.guaranteed.repository import GuaranteeRepository
from quorate_api.guarantees.schemas import (
    GuaranteedGroup,
    GuaranteePrice,
    GuaranteeQuote,
    GuaranteeRefusal,
    GuaranteeTerms,
    ProjectGuarantee,
)
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.pricing import prices
from quorate_api.projects import service as projects
from quorate_api.quotas import service as quotas

# The coordinator's codes of a guarantee that contradicts the project, and the field at fault.
_AT_FAULT = {
    "invalid_guarantee": "shared_tokens_per_s",
    "foreign_group": "policy.groups",
    "guarantee_below_groups": "max_tokens_per_s",
}
_FREE = GuaranteeTerms(shared_tokens_per_s=0)


async def get(work: Work, services: Services, principal: Principal, project_id: UUID) -> ProjectGuarantee:
    await projects.visible(work, principal, project_id)
    principal.require(Permission.VIEW)
    return await _shown(work, services, project_id)


async def quote(
    work: Work, services: Services, principal: Principal, project_id: UUID, asked: GuaranteeTerms
) -> GuaranteeQuote:
    await projects.visible(work, principal, project_id)
    principal.require(Permission.MANAGE)
    refusal = await _refusal(work, services, project_id, asked)
    return GuaranteeQuote(admissible=refusal is None, price=_price(asked.shared_tokens_per_s), refusal=refusal)


async def put(
    work: Work, services: Services, principal: Principal, project_id: UUID, asked: GuaranteeTerms
) -> ProjectGuarantee:
    await projects.visible(work, principal, project_id)
    principal.require(Permission.MANAGE)
    present = await _settled(work, services, project_id)
    if present is not None and present.terms == _terms(asked):
        return await _shown(work, services, project_id)
    refusal = await _refusal(work, services, project_id, asked)
    if refusal is not None:
        raise _refused(refusal)
    await quotas.lock(work)
    before = (present.terms or {}).get("shared_tokens_per_s", 0) if present is not None else 0
    if asked.shared_tokens_per_s > before:
        await quotas.check(work, quotas.GUARANTEED_TOKENS, adding=asked.shared_tokens_per_s - before)
    hourly = _price(asked.shared_tokens_per_s).hourly_micros
    more = hourly - (present.hourly_micros if present is not None else 0)
    await services.require_spend_room(work, project_id, more)
    await _change(work, services, project_id, present, _terms(asked), hourly)
    return await _shown(work, services, project_id)


async def take_back(work: Work, services: Services, principal: Principal, project_id: UUID) -> None:
    """Repeating it is harmless."""
    await projects.visible(work, principal, project_id)
    principal.require(Permission.MANAGE)
    present = await _settled(work, services, project_id)
    if present is not None and present.terms is not None:
        await _change(work, services, project_id, present, None, 0)


async def _change(
    work: Work,
    services: Services,
    project_id: UUID,
    present: Row[Any] | None,
    terms: dict[str, Any] | None,
    hourly: int,
) -> None:
    guarantees = GuaranteeRepository(work.scope)
    revision = 1 if present is None else present.revision + 1
    stored = await guarantees.insert(
        project_id=project_id,
        revision=revision,
        terms=terms,
        hourly_micros=hourly,
        requested_at=datetime.now(UTC),
        since=None,
    )
    if not stored:
        raise Problem(Code.PRECONDITION_FAILED, "Another request changed the guarantee meanwhile.")
    await _settled(work, services, project_id, is_first=True)


async def _settled(work: Work, services: Services, project_id: UUID, *, is_first: bool = False) -> Row[Any] | None:
    """The last change, once the coordinator has answered to it. None: there was none. `is_first`: it was not asked
    before, so that a change which did not reach it has not happened."""
    guarantees = GuaranteeRepository(work.scope)
    row = await guarantees.latest(project_id)
    if row is None or row.since is not None:
        return row
    try:
        async with work.outside():
            view = await services.coordinator.set_guarantee(project_id, row.terms, row.revision)
    except GuaranteeRefused as error:
        await _call_off(work, row)
        raise _refused(GuaranteeRefusal(**error.refusal.model_dump())) from error
    except RequestInvalid as error:
        await _call_off(work, row)
        raise _invalid(error) from error
    except CoordinatorUnavailable as error:
        if is_first and not error.sent:
            await _call_off(work, row)
        raise
    await GuaranteeRepository(work.scope).confirm(project_id, row.revision, view.since or datetime.now(UTC))
    return await GuaranteeRepository(work.scope).latest(project_id)


async def _call_off(work: Work, row: Row[Any]) -> None:
    await GuaranteeRepository(work.scope).call_off(row.project_id, row.revision)
    await work.checkpoint()


async def _refusal(work: Work, services: Services, project_id: UUID, asked: GuaranteeTerms) -> GuaranteeRefusal | None:
    try:
        async with work.outside():
            refusal = await services.coordinator.quote_guarantee(project_id, _terms(asked))
    except RequestInvalid as error:
        raise _invalid(error) from error
    return None if refusal is None else GuaranteeRefusal(**refusal.model_dump())


async def _shown(work: Work, services: Services, project_id: UUID) -> ProjectGuarantee:
    async with work.outside():
        view = await services.coordinator.guarantee(project_id)
    row = await GuaranteeRepository(work.scope).latest(project_id)
    confirmed = await GuaranteeRepository(work.scope).confirmed(project_id)
    terms = _FREE if confirmed is None or confirmed.terms is None else GuaranteeTerms.model_validate(confirmed.terms)
    has_one = confirmed is not None and confirmed.terms is not None
    return ProjectGuarantee(
        project_id=project_id,
        shared_tokens_per_s=terms.shared_tokens_per_s,
        max_tokens_per_s=terms.max_tokens_per_s,
        policy=terms.policy,
        revision=0 if confirmed is None else confirmed.revision,
        since=confirmed.since if has_one and confirmed is not None else None,
        is_settled=row is None or row.since is not None,
        own_tokens_per_s=view.own_tokens_per_s,
        price=_price(terms.shared_tokens_per_s, None if confirmed is None else confirmed.hourly_micros),
        groups=await _groups(work, view, terms),
    )


async def _groups(work: Work, view: GuaranteeView, terms: GuaranteeTerms) -> list[GuaranteedGroup]:
    """Groups that the API knows, in the order of their names."""
    now = {group.group_id: group for group in view.groups}
    found = []
    for row in await GroupRepository(work.scope).get_many(now):
        group = now[row.id]
        of_all = terms.shared_tokens_per_s * 1_000 // max(1, group.request_milli_tokens)
        found.append(
            GuaranteedGroup(
                group_id=row.id,
                name=row.name,
                tokens_per_append=group.request_milli_tokens / 1_000,
                own_tokens_per_s=group.own_tokens_per_s,
                own_appends_per_s=row.rate_per_s,
                most_appends_per_s=row.rate_per_s + of_all,
                wanted_per_s=group.wanted_per_s,
                share_per_s=group.share_per_s,
            )
        )
    return sorted(found, key=lambda group: (group.name, group.group_id))


def _price(shared_tokens_per_s: int, agreed_hourly: int | None = None) -> GuaranteePrice:
    """`agreed_hourly`: of a guarantee that is in force."""
    hourly = agreed_hourly
    if hourly is None:
        hourly = hourly_micros(shared_tokens_per_s, prices.at(datetime.now(UTC)))
    return GuaranteePrice(
        hourly_micros=hourly, monthly_micros=hourly * prices.HOURS_PER_MONTH, currency=prices.CURRENCY
    )


def _terms(asked: GuaranteeTerms) -> dict[str, Any]:
    return asked.model_dump(mode="json", by_alias=True, exclude_none=True)


def _refused(refusal: GuaranteeRefusal) -> Problem:
    errors = [FieldError(field="shared_tokens_per_s", message=refusal.message)]
    return Problem(Code.GUARANTEE_REFUSED, refusal.message, errors=errors)


def _invalid(error: RequestInvalid) -> Problem:
    if error.code == "guarantee_revision":
        return Problem(Code.PRECONDITION_FAILED, "Another request changed the guarantee meanwhile.")
    if error.code == "fleet_not_ready":
        return Problem(Code.GUARANTEE_REFUSED, str(error))
    field = _AT_FAULT.get(error.code) or error.field.removeprefix("guarantee.") or "shared_tokens_per_s"
    return Problem(Code.VALIDATION_FAILED, str(error), errors=[FieldError(field=field, message=str(error))])
