"""`/v1/operator/me`, `/v1/operator/sessions`, `/v1/operator/audit`."""

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from quorate_api.http.pagination import OperatorPageParameters
from quorate_api.http.principal import Environment, Transaction
from quorate_api.http.route import OperatorRoute
from quorate_api.http.schemas import Page
from quorate_api.http.staff import CallingOperator
from quorate_api.operators import service
from quorate_api.operators.schemas import CreatedOperatorSession, NamedOperator, NewOperatorSession, OperatorEvent

router = APIRouter(prefix="/v1/operator", tags=["operator"], route_class=OperatorRoute)


@router.get("/me")
async def get_operator(caller: CallingOperator) -> NamedOperator:
    """The caller's name, as the audit log has it."""
    return NamedOperator(name=caller.name, expires_at=caller.until)


@router.post("/sessions", status_code=201)
async def begin_operator_session(
    asked: NewOperatorSession, services: Environment, caller: CallingOperator
) -> CreatedOperatorSession:
    """A token for one person's work, which ends by itself. Only a long-lived token makes one."""
    return service.begin(services, caller, asked)


@router.get("/audit")
async def list_operator_events(work: Transaction, paging: OperatorPageParameters) -> Page[OperatorEvent]:
    """Each change that an operator made, newest first."""
    return await service.page(work, paging)


@router.get(
    "/audit/export",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}, "description": "JSON lines."}},
)
async def export_operator_log(services: Environment) -> StreamingResponse:
    """The whole log as JSON lines, oldest first. `quorate-api audit-verify FILE` checks the chain of hashes."""
    headers = {"Content-Disposition": 'attachment; filename="quorate-operators.jsonl"'}
    return StreamingResponse(service.export(services), media_type="application/jsonl", headers=headers)
