"""Quotes: a dry run of admission, with its price."""

from datetime import UTC, datetime
from uuid import UUID

from quorate_api.admission import service as admission
from quorate_api.coordinator.schemas import ObservedSla
from quorate_api.database.work import Work
from quorate_api.groups import service as groups
from quorate_api.http.principal import Permission, Principal
from quorate_api.http.services import Services
from quorate_api.pricing import prices
from quorate_api.pricing.reservation import price_of
from quorate_api.projects import service as projects
from quorate_api.promises.availability import availability_ppm
from quorate_api.promises.schemas import SlaPromise
from quorate_api.quotes.schemas import Demand, QuoteAnswer


async def create(
    work: Work,
    services: Services,
    principal: Principal,
    sla: ObservedSla,
    replaces: UUID | None,
    project_id: UUID | None,
) -> QuoteAnswer:
    principal.require(Permission.MANAGE)
    if replaces is not None:
        await groups.visible(work, principal, replaces)
    if project_id is not None:
        await projects.visible(work, principal, project_id)
    quote = await admission.quote(work, services, sla, replaces, project_id)
    return QuoteAnswer(
        admissible=quote.admissible,
        price=price_of(quote.total_demand, prices.at(datetime.now(UTC))),
        promise=SlaPromise.of(sla, availability_ppm(quote.failure_domains)),
        demand=Demand(replicas=quote.demand, total=quote.total_demand, dominant_resource=quote.dominant_resource),
        refusal=quote.refusal,
    )
