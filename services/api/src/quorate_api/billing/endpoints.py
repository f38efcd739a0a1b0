"""`/v1/invoices`."""

from uuid import UUID

from fastapi import APIRouter

from quorate_api.billing import service
from quorate_api.billing.schemas import Invoice, InvoiceHead
from quorate_api.http.pagination import PageParameters
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.http.schemas import Page

router = APIRouter(prefix="/v1/invoices", tags=["billing"], route_class=ScopedRoute)


@router.get("")
async def list_invoices(work: Transaction, caller: Caller, paging: PageParameters) -> Page[InvoiceHead]:
    """Issued invoices and credit notes, newest first."""
    return await service.page(work, caller, paging)


@router.get("/current")
async def get_current_invoice(work: Transaction, caller: Caller) -> Invoice:
    """The open invoice: what this month costs so far."""
    return await service.current(work, caller)


@router.get("/{invoice_id}")
async def get_invoice(invoice_id: UUID, work: Transaction, caller: Caller) -> Invoice:
    """An issued invoice or credit note with its lines."""
    return await service.get(work, caller, invoice_id)
