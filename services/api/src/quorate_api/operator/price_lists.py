"""The price lists, for operators to look at."""

from datetime import UTC, datetime

from quorate_api.operator.schemas import PriceListed, PriceLists, PriceOfCommitment, PriceOfResource, PriceOfUse
from quorate_api.pricing import prices as lists
from quorate_api.pricing.prices import PriceList


def all_of_them() -> PriceLists:
    held = lists.at(datetime.now(UTC))
    return PriceLists(currency=lists.CURRENCY, items=[_listed(each, held) for each in reversed(lists.LISTS)])


def _listed(each: PriceList, held: PriceList) -> PriceListed:
    return PriceListed(
        valid_from=each.valid_from,
        is_held=each is held,
        resources=[
            PriceOfResource(resource=price.resource, unit=price.unit, hourly_micros=price.hourly_micros)
            for price in each.resources
        ],
        usage=[
            PriceOfUse(
                kind=price.kind, label=price.label, per=price.price_quantity_label, price_micros=price.unit_price_micros
            )
            for price in each.usage
        ],
        guarantee_hourly_micros=each.guarantee_hourly_micros,
        commitments=[PriceOfCommitment(months=months, percent_off=percent) for months, percent in each.commitments],
    )
