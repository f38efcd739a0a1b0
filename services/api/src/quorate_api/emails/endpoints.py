"""`/v1/me/email/…`."""

from fastapi import APIRouter, Response

from quorate_api.emails import service
from quorate_api.emails.schemas import Verification
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import ScopedRoute

router = APIRouter(prefix="/v1/me/email", tags=["accounts"], route_class=ScopedRoute)


@router.post("/verification", status_code=202)
async def send_verification(work: Transaction, services: Environment, caller: Caller) -> Response:
    """Have another link mailed that verifies the person's address. The one before it does not work any more."""
    await service.send_again(work, services, caller)
    return Response(status_code=202)


@router.post("/verify", status_code=204)
async def verify_email(asked: Verification, work: Transaction, services: Environment, caller: Caller) -> Response:
    """Verify the address by the link in the mail, in a session of the account that signed up."""
    await service.verify(work, services, caller, asked.token)
    return Response(status_code=204)
