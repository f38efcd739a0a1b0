"""Quotes: a dry run of admission, with its price."""

from quorate_api.access.permissions import Permission
from quorate_api.admission import service as admission
from quorate_api.database.work import Work
from quorate_api.groups import partitioning
from quorate_api.groups import service as groups
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.pricing.reservation import sum_of
from quorate_api.projects import service as projects
from quorate_api.promises.availability import availability_ppm
from quorate_api.promises.schemas import SlaPromise
from quorate_api.quotes.schemas import Demand, QuoteAnswer, QuoteRequest


async def create(work: Work, services: Services, principal: Principal, asked: QuoteRequest) -> QuoteAnswer:
    principal.require_somewhere(Permission.MANAGE)
    sla, replaces, project_id = asked.sla(), asked.replaces_group_id, asked.project_id
    if replaces is not None:
        await groups.visible(work, principal, replaces, Permission.MANAGE)
    if project_id is not None:
        await projects.visible(work, principal, project_id)
    divided = asked.partitions if replaces is not None or (asked.partitions or 1) > 1 else None
    quote = await admission.quote(work, services, sla, replaces, project_id, divided)
    return QuoteAnswer(
        admissible=quote.admissible,
        price=sum_of(partitioning.prices_of(partitioning.parts_of(quote, sla))),
        promise=SlaPromise.of(sla, availability_ppm(quote.failure_domains)),
        demand=Demand(replicas=quote.demand, total=quote.total_demand, dominant_resource=quote.dominant_resource),
        moves=quote.moves,
        refusal=quote.refusal,
    )
