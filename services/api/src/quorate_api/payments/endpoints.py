"""`/v1/invoices/{id}/payments` and `/checkout`, the operators' side, and the provider's events."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request

from quorate_api import limits
from quorate_api.checkout.port import Manual
from quorate_api.errors import Code, Problem
from quorate_api.http.pagination import OperatorPageParameters, PageParameters
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import OperatorRoute, PublicRoute, ScopedRoute
from quorate_api.http.schemas import Page
from quorate_api.http.staff import Operator
from quorate_api.payments import recording, service
from quorate_api.payments.schemas import (
    Checkout,
    EventAnswer,
    FoundInvoices,
    InvoiceAccount,
    NewPaymentEntry,
    PaymentEntry,
    RecordedEntry,
)

router = APIRouter(prefix="/v1/invoices", tags=["billing"], route_class=ScopedRoute)
operator_router = APIRouter(prefix="/v1/operator/invoices", tags=["operator"], route_class=OperatorRoute)
event_router = APIRouter(prefix="/v1/payments", tags=["billing"], route_class=PublicRoute)

EVENT_BODY = {"content": {"application/json": {"schema": {"type": "object", "description": "An event of Stripe."}}}}


@router.get("/{invoice_id}/payments")
async def list_payments(
    invoice_id: UUID, work: Transaction, caller: Caller, paging: PageParameters
) -> Page[PaymentEntry]:
    """Payments of the invoice, and what took them back, newest first."""
    return await service.entries(work, caller, invoice_id, paging)


@router.post("/{invoice_id}/checkout")
async def check_out(invoice_id: UUID, work: Transaction, caller: Caller, services: Environment) -> Checkout:
    """How to pay what is due: the provider's page, or lines that say where to transfer it.

    Repeating it gives the same page while that is open and the amount is the same."""
    return await service.checkout(work, caller, services.payments, services.settings.origin, invoice_id)


@operator_router.get("")
async def find_invoices(
    work: Transaction,
    _operator: Operator,
    number: Annotated[
        str, Query(pattern=r"^[A-Za-z0-9-]{1,100}$", description="The invoice's number, whole, as in INV-2026-000042.")
    ],
) -> FoundInvoices:
    """Invoices of that number: one, or for numbers of before 2026-11-24 one for each customer."""
    return await service.find(work, number)


@operator_router.get("/{invoice_id}/payments")
async def get_invoice_account(
    invoice_id: UUID, work: Transaction, paging: OperatorPageParameters, services: Environment
) -> InvoiceAccount:
    """Any customer's invoice: its entries, newest first, and where it stands."""
    return await service.account(work, services.payments, invoice_id, paging)


@operator_router.post("/{invoice_id}/payments", status_code=201)
async def record_payment(
    invoice_id: UUID, asked: NewPaymentEntry, work: Transaction, operator: Operator, services: Environment
) -> RecordedEntry:
    """Record money that came in, a debt that is given up, or the reversal of an entry. Entries are never changed."""
    return await recording.by_operator(work, services.payments, operator, invoice_id, asked)


@event_router.post("/stripe/events", openapi_extra={"requestBody": EVENT_BODY})
async def receive_stripe_event(
    request: Request,
    work: Transaction,
    services: Environment,
    signature: Annotated[str, Header(alias="Stripe-Signature", max_length=limits.STRIPE_SIGNATURE_LENGTH_MAX)] = "",
) -> EventAnswer:
    """For Stripe: a signed event. A paid checkout is recorded once."""
    if isinstance(services.payments, Manual):
        raise Problem(Code.NOT_FOUND, "This API takes no events of Stripe (QUORATE_PAYMENT_PROVIDER).")
    return await recording.by_event(work, services.payments, await request.body(), signature)
