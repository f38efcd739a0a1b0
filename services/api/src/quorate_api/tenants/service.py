"""Operators and one organization: its quotas, and a look at it as its members see it."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from quorate_api import limits
from quorate_api.closure import service as closure
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import not_found
from quorate_api.http.services import Services
from quorate_api.http.staff import StaffCaller
from quorate_api.mail import texts
from quorate_api.quotas import service as quotas
from quorate_api.quotas.repository import AllQuotaRequests, QuotaRepository
from quorate_api.quotas.schemas import Quotas
from quorate_api.security import views
from quorate_api.tenants.schemas import OpenRequest, OpenRequests, View


async def view(work: Work, services: Services, operator: StaffCaller, organization_id: UUID) -> View:
    """The request's reason is in both audit logs, as every operator's change of an organization is."""
    await closure.entered(work, organization_id)
    until = datetime.now(UTC) + timedelta(seconds=limits.VIEW_S)
    token = views.issue(services.keys, views.View(new_id(), organization_id, operator.name, until))
    return View(token=token, expires_at=until)


async def quotas_of(work: Work, organization_id: UUID) -> Quotas:
    await closure.entered(work, organization_id)
    return await quotas.all_of(work)


async def set_limit(work: Work, services: Services, organization_id: UUID, code: str, limit: int) -> Quotas:
    """It answers a request for more, if there is one."""
    quota = quotas.by_code(code)
    row = await closure.entered(work, organization_id)
    repository = QuotaRepository(work.scope)
    await repository.set(code, limit)
    if await repository.end_request(code):
        origin = services.settings.origin
        await closure.tell_owners(
            work, services, lambda to: texts.quota_changed(to, row.name, quota.description, limit, origin)
        )
    return await quotas.all_of(work)


async def use_default(work: Work, organization_id: UUID, code: str) -> Quotas:
    quotas.by_code(code)
    await closure.entered(work, organization_id)
    await QuotaRepository(work.scope).unset(code)
    return await quotas.all_of(work)


async def decline(work: Work, services: Services, organization_id: UUID, code: str, reason: str) -> None:
    quota = quotas.by_code(code)
    row = await closure.entered(work, organization_id)
    if not await QuotaRepository(work.scope).end_request(code):
        raise not_found("request for a quota")
    origin = services.settings.origin
    await closure.tell_owners(
        work, services, lambda to: texts.quota_declined(to, row.name, quota.description, reason, origin)
    )


async def requests(work: Work) -> OpenRequests:
    rows = await AllQuotaRequests(work.connection).all()
    return OpenRequests(items=[OpenRequest(**row._mapping) for row in rows])
