"""`/v1/invoices`."""

from collections.abc import Callable
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from quorate_api.billing import service
from quorate_api.billing.issuer import Issuer
from quorate_api.billing.schemas import Invoice, InvoiceHead
from quorate_api.database.work import Work
from quorate_api.documents import lines_csv, pdf
from quorate_api.documents.document import Document
from quorate_api.http.answer import as_json, file_of
from quorate_api.http.pagination import PageParameters
from quorate_api.http.principal import Caller, Environment, Principal, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.http.schemas import Page
from quorate_api.http.services import Services

router = APIRouter(prefix="/v1/invoices", tags=["billing"], route_class=ScopedRoute)

PDF, CSV = "application/pdf", "text/csv"


@router.get("")
async def list_invoices(
    work: Transaction, caller: Caller, paging: PageParameters, services: Environment
) -> Page[InvoiceHead]:
    """Issued invoices and credit notes, newest first."""
    return await service.page(work, caller, services.payments.name, paging)


@router.get("/current", response_model=Invoice)
async def get_current_invoice(work: Transaction, caller: Caller, services: Environment) -> Response:
    """The open invoice: what this month costs so far."""
    return as_json(await service.current(work, caller, Issuer.configured(services.settings)))


@router.get("/current/document.pdf", **file_of(PDF, "The open invoice, marked as a draft."))
async def get_current_invoice_document(work: Transaction, caller: Caller, services: Environment) -> Response:
    """The open invoice as a PDF. It is a draft, and no invoice."""
    document = await service.current_document(work, caller, Issuer.configured(services.settings))
    return await _made(work, caller, services, document, pdf.render, PDF)


@router.get("/current/lines.csv", **file_of(CSV, "A row for each line, then one for each tax line."))
async def get_current_invoice_lines(work: Transaction, caller: Caller, services: Environment) -> Response:
    """The lines of the open invoice as CSV."""
    document = await service.current_document(work, caller, Issuer.configured(services.settings))
    return await _made(work, caller, services, document, lines_csv.render, CSV)


@router.get("/{invoice_id}", response_model=Invoice)
async def get_invoice(invoice_id: UUID, work: Transaction, caller: Caller, services: Environment) -> Response:
    """An issued invoice or credit note with its lines."""
    return as_json(await service.get(work, caller, services.payments.name, invoice_id))


@router.get("/{invoice_id}/document.pdf", **file_of(PDF, "The document, the same bytes each time."))
async def get_invoice_document(invoice_id: UUID, work: Transaction, caller: Caller, services: Environment) -> Response:
    """An issued invoice or credit note as a PDF."""
    document = await service.document(work, caller, Issuer.configured(services.settings), invoice_id)
    return await _made(work, caller, services, document, pdf.render, PDF)


@router.get("/{invoice_id}/lines.csv", **file_of(CSV, "A row for each line, then one for each tax line."))
async def get_invoice_lines(invoice_id: UUID, work: Transaction, caller: Caller, services: Environment) -> Response:
    """The lines of an issued invoice or credit note as CSV."""
    document = await service.document(work, caller, Issuer.configured(services.settings), invoice_id)
    return await _made(work, caller, services, document, lines_csv.render, CSV)


async def _made(
    work: Work,
    caller: Principal,
    services: Services,
    document: Document,
    render: Callable[[Document], bytes],
    media_type: str,
) -> Response:
    async with work.outside():
        content = await services.press.make(caller.organization_id, render, document)
    name = f"{document.file_stem}.{'pdf' if media_type == PDF else 'csv'}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=media_type, headers=headers)
