"""Payment of invoices: its state, entries, ways to pay and reminders."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from quorate_api import limits
from quorate_api.checkout.port import ProviderName
from quorate_api.documents.amounts import MICROS_PER_CENT
from quorate_api.http.schemas import Input, Output, Page, printable
from quorate_api.payments.books import Kind
from quorate_api.payments.dunning import Stage
from quorate_api.payments.standing import State


class Reminder(Output):
    """A reminder that was given, once for each stage."""

    id: UUID
    stage: Stage
    due_micros: int = Field(description="Amount that was due then.")
    due_at: datetime
    at: datetime


class Payment(Output):
    """How far an invoice is paid. All amounts are whole cents."""

    state: State = Field(description="`paid` also where nothing is to pay; `overdue` from `due_at` on.")
    provider: ProviderName = Field(description="How it is paid now: see `POST /v1/invoices/{id}/checkout`.")
    due_at: datetime | None = Field(description="null for invoices from before there were due dates.")
    payable_micros: int = Field(description="The total and its credit notes, each rounded half up to whole cents.")
    paid_micros: int
    written_off_micros: int = Field(description="Amount that the seller has given up.")
    due_micros: int = Field(description="Amount that is left to pay.")
    overpaid_micros: int = Field(description="Amount that came in above the payable one. The seller returns it.")
    reminders: list[Reminder] = Field(description="Oldest first.")


class PaymentEntry(Output):
    """An entry of the invoice's account. Entries are only added; a reversal takes a whole one back."""

    id: UUID
    kind: Kind
    provider: ProviderName
    reference: str = Field(description="Name of the money at the bank or at Stripe.")
    amount_micros: int
    reverses_id: UUID | None = Field(description="The entry that a reversal takes back.")
    at: datetime


class Checkout(Output):
    """The way to pay what is due now."""

    provider: ProviderName
    amount_micros: int
    currency: str
    reference: str = Field(description="The invoice's number. Name it when you pay.")
    instructions: list[str] = Field(description="With `manual`: lines that say how to pay.")
    url: str | None = Field(description="With `stripe`: its page, on which the customer pays by card.")
    expires_at: datetime | None = Field(description="End of that page. Another request makes another one.")


def _whole_cents(value: int) -> int:
    if value % MICROS_PER_CENT:
        raise ValueError("must be whole cents, a multiple of 10 000")
    return value


WholeCents = Annotated[int, Field(ge=MICROS_PER_CENT, le=limits.PAYMENT_MICROS_MAX), AfterValidator(_whole_cents)]
Reference = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=limits.PAYMENT_REFERENCE_LENGTH_MAX),
    AfterValidator(printable),
]


class NewPaymentEntry(Input):
    """An operator's record: money that came in, a debt that is given up, or the reversal of an earlier entry."""

    kind: Kind = "payment"
    amount_micros: WholeCents | None = Field(None, description="Left out for a reversal, which is of the whole entry.")
    reverses_id: Annotated[UUID, Field(strict=False)] | None = None
    reference: Reference = Field(description="Name of the money, such as the bank's number of the transfer.")

    @model_validator(mode="after")
    def _fits_its_kind(self) -> "NewPaymentEntry":
        if self.kind == "reversal" and (self.reverses_id is None or self.amount_micros is not None):
            raise ValueError("a reversal needs reverses_id, and no amount_micros")
        if self.kind != "reversal" and (self.amount_micros is None or self.reverses_id is not None):
            raise ValueError(f"a {self.kind} needs amount_micros, and no reverses_id")
        return self


class RecordedEntry(Output):
    entry: PaymentEntry
    payment: Payment


class InvoiceAccount(Page[PaymentEntry]):
    payment: Payment


class FoundInvoice(Output):
    """An invoice as an operator finds it."""

    id: UUID
    organization_id: UUID
    number: str
    total_micros: int
    currency: str
    issued_at: datetime
    due_at: datetime | None


class FoundInvoices(Output):
    items: list[FoundInvoice]


class EventAnswer(Output):
    outcome: Literal["recorded", "repeated", "ignored"] = Field(
        description="repeated: it was recorded before; ignored: it tells of no payment of an invoice here."
    )
