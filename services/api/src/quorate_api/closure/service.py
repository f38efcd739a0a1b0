"""The end of an organization: asked for by an owner, called off until it is due, and suspension by operators."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.access.permissions import Permission
from quorate_api.closure.repository import StandingRepository, TenantRepository
from quorate_api.closure.schemas import Closure, OrganizationStanding, Suspension, Tenant
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, invalid, not_found
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.http.services import Services
from quorate_api.mail import outbox, texts
from quorate_api.mail.message import Mail
from quorate_api.payments.repository import read_books
from quorate_api.payments.service import stands

GRACE = timedelta(seconds=limits.CLOSURE_GRACE_S)
KEPT = timedelta(seconds=limits.CLOSED_KEPT_S)


async def get(work: Work) -> OrganizationStanding:
    return _shown(await _row(work))


async def close(work: Work, services: Services, principal: Principal, asked: Closure) -> OrganizationStanding:
    """Repeating it changes nothing."""
    _require_owner(principal)
    row = await _row(work, lock=True)
    if asked.name != row.name:
        raise invalid("name", "Is not the organization's name.")
    if row.closing_at is not None:
        return _shown(row)
    now = datetime.now(UTC)
    await _require_nothing_owed(work, now)
    await StandingRepository(work.scope).set(closing_at=now, closes_at=now + GRACE)
    row = await _row(work)
    await tell_owners(work, services, lambda to: texts.closing(to, row.name, row.closes_at, services.settings.origin))
    return _shown(row)


async def reopen(work: Work, services: Services, principal: Principal) -> OrganizationStanding:
    """Call off the closing. Repeating it changes nothing."""
    _require_owner(principal)
    row = await _row(work, lock=True)
    if row.closed_at is not None:
        raise Problem(Code.CLOSURE_REFUSED, "The organization is closed, and its groups are deleted.")
    if row.closing_at is not None:
        await StandingRepository(work.scope).set(closing_at=None, closes_at=None)
        await tell_owners(work, services, lambda to: texts.reopened(to, row.name, services.settings.origin))
    return await get(work)


async def suspend(work: Work, services: Services, organization_id: UUID, asked: Suspension) -> OrganizationStanding:
    """By an operator. Repeating it changes the reason."""
    row = await entered(work, organization_id)
    since = row.suspended_at or datetime.now(UTC)
    await StandingRepository(work.scope).set(suspended_at=since, suspension_reason=asked.reason)
    if row.suspended_at is None:
        await tell_owners(
            work, services, lambda to: texts.suspended(to, row.name, asked.reason, services.settings.origin)
        )
    return await get(work)


async def end_suspension(work: Work, services: Services, organization_id: UUID) -> OrganizationStanding:
    row = await entered(work, organization_id)
    if row.suspended_at is not None:
        await StandingRepository(work.scope).set(suspended_at=None, suspension_reason=None)
        await tell_owners(work, services, lambda to: texts.reopened(to, row.name, services.settings.origin))
    return await get(work)


async def tenants(work: Work, search: str | None, paging: Paging) -> Page[Tenant]:
    rows = await TenantRepository(work.connection).page(search, paging.after_id, paging.limit + 1)
    rows, cursor = paging.cut(rows, lambda row: row.organization_id)
    names = set(Tenant.model_fields) - {"id"}
    items = [Tenant(id=row.organization_id, **{name: getattr(row, name) for name in names}) for row in rows]
    return Page(items=items, next_cursor=cursor)


def _require_owner(principal: Principal) -> None:
    principal.require_person()
    principal.require(Permission.OWN)
    principal.require_confirmed()


async def _require_nothing_owed(work: Work, now: datetime) -> None:
    """Raises `closure_refused`, with all that has to be ended or paid first."""
    repository = StandingRepository(work.scope)
    first = [f"take back the guarantee of the project {name}" for name in await repository.guaranteed_projects()]
    first += [f"wait for the commitment that ends on {end:%Y-%m-%d}" for end in await repository.open_commitments(now)]
    rows = await repository.invoices()
    books = await read_books(work.scope, [row.id for row in rows])
    first += [f"pay the invoice {row.number}" for row in rows if stands(row, books, now).due_micros > 0]
    if first:
        shown = first[: limits.CLOSURE_REASONS_SHOWN]
        more = f", and {len(first) - len(shown)} more" if len(first) > len(shown) else ""
        raise Problem(Code.CLOSURE_REFUSED, f"Before the organization can close: {'; '.join(shown)}{more}.")


async def entered(work: Work, organization_id: UUID) -> Row[Any]:
    """The organization, which an operator looks at or changes. Raises `not_found`, also for an erased one."""
    await work.enter(organization_id)
    row = await StandingRepository(work.scope).get(lock=True)
    if row is None or row.erased_at is not None:
        raise not_found("organization")
    return row


async def _row(work: Work, *, lock: bool = False) -> Row[Any]:
    row = await StandingRepository(work.scope).get(lock=lock)
    assert row is not None, "the caller's organization is there"
    return row


async def tell_owners(work: Work, services: Services, mail: Callable[[str], Mail]) -> None:
    """`mail`: the one to an address."""
    for address in await StandingRepository(work.scope).owners():
        await outbox.post(work, services, mail(address))


def _shown(row: Row[Any]) -> OrganizationStanding:
    names = set(OrganizationStanding.model_fields) - {"id", "erased_after"}
    return OrganizationStanding(
        id=row.organization_id,
        erased_after=None if row.closed_at is None else row.closed_at + KEPT,
        **{name: getattr(row, name) for name in names},
    )
