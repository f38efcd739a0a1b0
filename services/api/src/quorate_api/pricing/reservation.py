"""The price of a reservation, from its resources on the fleet. Pure."""

from collections.abc import Sequence

from quorate_api.coordinator.schemas import ResourceDemand
from quorate_api.pricing import prices
from quorate_api.pricing.prices import PriceList
from quorate_api.pricing.schemas import Price, PriceLine, UsagePriceLine


def price_of(total: ResourceDemand, price_list: PriceList) -> Price:
    """The price of a reservation that takes `total` on the fleet."""
    lines = [
        PriceLine(
            resource=resource.resource,
            quantity=getattr(total, resource.attribute) / resource.units,
            unit=resource.unit,
            unit_price_micros=resource.hourly_micros,
            hourly_micros=prices.hourly_of(resource, total),
        )
        for resource in price_list.resources
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
        for item in price_list.usage
    ]
    return Price(
        hourly_micros=hourly,
        monthly_micros=hourly * prices.HOURS_PER_MONTH,
        currency=prices.CURRENCY,
        lines=lines,
        usage=usage,
    )


def sum_of(parts: Sequence[Price]) -> Price:
    """The price of several reservations by the same list. It is the sum of what each is billed."""
    first = parts[0]
    lines = [
        line.model_copy(
            update={
                "quantity": sum(part.lines[number].quantity for part in parts),
                "hourly_micros": sum(part.lines[number].hourly_micros for part in parts),
            }
        )
        for number, line in enumerate(first.lines)
    ]
    hourly = sum(part.hourly_micros for part in parts)
    return first.model_copy(
        update={"hourly_micros": hourly, "monthly_micros": hourly * prices.HOURS_PER_MONTH, "lines": lines}
    )
