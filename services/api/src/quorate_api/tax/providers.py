"""The providers by their names in the setting `QUORATE_TAX`."""

from collections.abc import Sequence

from quorate_api.settings import Settings
from quorate_api.tax.flat import Flat
from quorate_api.tax.parties import Customer, Seller
from quorate_api.tax.port import Taxable, TaxLine, TaxProvider


def none(seller: Seller, customer: Customer, lines: Sequence[Taxable]) -> list[TaxLine]:
    """No tax, and no line that says so."""
    return []


def configured(settings: Settings) -> TaxProvider:
    if settings.tax == "flat":
        label, rate_ppm = settings.tax_label, settings.tax_rate_ppm
        assert label is not None, "checked by the settings"
        assert rate_ppm is not None, "checked by the settings"
        return Flat(label, rate_ppm)
    return none
