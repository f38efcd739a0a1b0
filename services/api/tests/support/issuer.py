"""Sellers for tests: one without tax, and one with."""

from quorate_api.billing.issuer import Issuer
from quorate_api.tax import providers
from quorate_api.tax.flat import Flat
from quorate_api.tax.parties import Seller

SELLER = Seller("Quorate Cloud GmbH", ("Beispielstraße 12", "10115 Berlin"), "DE 123 456 789")
UNTAXED = Issuer(Seller(), providers.none)
TAXED = Issuer(SELLER, Flat("VAT 19 %", 190_000))
