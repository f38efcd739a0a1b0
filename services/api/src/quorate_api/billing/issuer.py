"""The issuer of documents: the seller, the rules by which tax is added, and the time to pay."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from quorate_api import limits
from quorate_api.settings import Settings
from quorate_api.tax import providers
from quorate_api.tax.parties import Customer, Seller
from quorate_api.tax.port import TaxProvider


@dataclass(frozen=True, slots=True)
class Issuer:
    seller: Seller
    tax: TaxProvider
    terms_days: int = limits.PAYMENT_TERMS_DAYS

    @classmethod
    def configured(cls, settings: Settings) -> "Issuer":
        address = tuple(line.strip() for line in settings.seller_address.split(";") if line.strip())
        seller = Seller(settings.seller_name.strip(), address, settings.seller_tax_id.strip())
        return cls(seller, providers.configured(settings), settings.payment_terms_days)

    def due_at(self, issued_at: datetime) -> datetime:
        return issued_at + timedelta(days=self.terms_days)

    def stored_seller(self) -> dict[str, Any] | None:
        """The seller as a document keeps it. A seller that is not set is looked up when the document is shown."""
        return asdict(self.seller) if self.seller.is_set else None

    def seller_of(self, stored: dict[str, Any] | None) -> Seller:
        if stored is None:
            return self.seller
        return Seller(stored["name"], tuple(stored["address"]), stored["tax_id"])


def stored_customer(customer: Customer) -> dict[str, Any]:
    return asdict(customer)


def customer_of(stored: dict[str, Any] | None, present: Customer) -> Customer:
    """Documents from before customers were stored show the present name."""
    return present if stored is None else Customer(stored["name"])
