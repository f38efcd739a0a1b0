"""The coordinator's dry run of admission, and the problems that its refusals become."""

from uuid import UUID

from quorate_api.admission.latency import kept
from quorate_api.coordinator.client import RequestInvalid
from quorate_api.coordinator.schemas import ObservedSla, Quote
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.guaranteed.repository import GuaranteeRepository
from quorate_api.http.services import Services


async def quote(
    work: Work,
    services: Services,
    sla: ObservedSla,
    replaces: UUID | None = None,
    project_id: UUID | None = None,
    partitions: int | None = None,
) -> Quote:
    """Ask whether the fleet admits `sla` now. The reservation of the group `replaces` does not count against it.
    `project_id`: of the group, whose guarantee counts. `partitions`: as many as the group has, if None."""
    has_one = project_id is not None and await GuaranteeRepository(work.scope).has_one(project_id)
    guaranteed = project_id if has_one else None
    try:
        async with work.outside():
            quote = await services.coordinator.quote(sla, replaces, guaranteed, partitions)
    except RequestInvalid as error:
        raise invalid_sla(error) from error
    return kept(sla, quote)


def refused(quote: Quote) -> Problem:
    message = quote.refusal.message if quote.refusal else None
    return Problem(Code.ADMISSION_REFUSED, message, refusal=quote.refusal)


def invalid_sla(error: RequestInvalid) -> Problem:
    errors = [FieldError(field="sla", message=str(error))]
    return Problem(Code.VALIDATION_FAILED, f"The SLA is not valid: {error}", errors=errors)
