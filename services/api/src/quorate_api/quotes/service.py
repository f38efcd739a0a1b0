"""Quotes: a dry run of admission, with its price."""

from uuid import UUID

from quorate_api.billing import prices
from quorate_api.coordinator.client import RequestInvalid
from quorate_api.coordinator.schemas import ObservedSla, Quote, ResourceDemand
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.http.services import Services
from quorate_api.quotes.schemas import Demand, Price, PriceLine, QuoteAnswer, UsagePriceLine


async def ask(work: Work, services: Services, sla: ObservedSla, replaces: UUID | None = None) -> Quote:
    try:
        async with work.outside():
            return await services.coordinator.quote(sla, replaces)
    except RequestInvalid as error:
        raise invalid_sla(error) from error


def invalid_sla(error: RequestInvalid) -> Problem:
    errors = [FieldError(field="sla", message=str(error))]
    return Problem(Code.VALIDATION_FAILED, f"The SLA is not valid: {error}", errors=errors)


def answer(quote: Quote) -> QuoteAnswer:
    return QuoteAnswer(
        admissible=quote.admissible,
        price=price(quote.total_demand),
        demand=Demand(replicas=quote.demand, total=quote.total_demand, dominant_resource=quote.dominant_resource),
        refusal=quote.refusal,
    )


def price(total: ResourceDemand) -> Price:
    """Of a reservation that takes `total` on the fleet."""
    lines = [
        PriceLine(
            resource=resource.resource,
            quantity=getattr(total, resource.attribute) / resource.units,
            unit=resource.unit,
            unit_price_micros=resource.hourly_micros,
            hourly_micros=prices.hourly_of(resource, total),
        )
        for resource in prices.RESOURCES
    ]
    hourly = sum(line.hourly_micros for line in lines)
    usage = [
        UsagePriceLine(
            kind=item.kind,
            label=item.label,
            per=item.price_quantity_label,
            unit=item.unit,
            price_quantity=item.price_quantity,
            unit_price_micros=item.unit_price_micros,
        )
        for item in prices.USAGE
    ]
    return Price(
        hourly_micros=hourly,
        monthly_micros=hourly * prices.HOURS_PER_MONTH,
        currency=prices.CURRENCY,
        lines=lines,
        usage=usage,
    )
