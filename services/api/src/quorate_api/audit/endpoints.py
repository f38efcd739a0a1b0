"""`/v1/audit`."""

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from quorate_api.access.permissions import Permission
from quorate_api.audit import service
from quorate_api.audit.schemas import AuditEvent
from quorate_api.http.pagination import PageParameters
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.http.schemas import Page

router = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=ScopedRoute)


@router.get("")
async def list_audit_events(work: Transaction, caller: Caller, paging: PageParameters) -> Page[AuditEvent]:
    """Each change in the organization, by whom, from where and with what key; newest first."""
    return await service.page(work, caller, paging)


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}, "description": "JSON lines."}},
)
async def export_audit_log(services: Environment, caller: Caller) -> StreamingResponse:
    """The whole log as JSON lines, oldest first. `quorate-api audit-verify FILE` checks the chain of hashes."""
    caller.require(Permission.ADMINISTER)
    headers = {"Content-Disposition": 'attachment; filename="quorate-audit.jsonl"'}
    return StreamingResponse(service.export(services, caller), media_type="application/jsonl", headers=headers)
