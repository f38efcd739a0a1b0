"""`/v1/me/second-factor`, `/v1/me/totp`, `/v1/me/recovery-codes`."""

from fastapi import APIRouter, Response

from quorate_api.factors import service
from quorate_api.factors.schemas import CodeInput, NewTotp, RecoveryCodes, SecondFactor
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import ScopedRoute

router = APIRouter(prefix="/v1/me", tags=["accounts"], route_class=ScopedRoute)


@router.get("/second-factor")
async def get_second_factor(work: Transaction, caller: Caller) -> SecondFactor:
    """The person's second factor."""
    return await service.state(work, caller)


@router.post("/totp", status_code=201)
async def begin_totp(work: Transaction, services: Environment, caller: Caller) -> NewTotp:
    """Begin to add an authenticator. It counts once it is confirmed with a code that it shows."""
    return await service.begin(work, services, caller)


@router.post("/totp/confirm")
async def confirm_totp(asked: CodeInput, work: Transaction, services: Environment, caller: Caller) -> RecoveryCodes:
    """Confirm the authenticator. From then on logging in takes a code."""
    return await service.confirm(work, services, caller, asked.code)


@router.delete("/totp", status_code=204)
async def remove_totp(work: Transaction, services: Environment, caller: Caller) -> Response:
    """Remove the authenticator and its recovery codes: the password alone is enough to log in."""
    await service.remove(work, services, caller)
    return Response(status_code=204)


@router.post("/recovery-codes")
async def renew_recovery_codes(work: Transaction, services: Environment, caller: Caller) -> RecoveryCodes:
    """Replace the recovery codes. The former ones do not work any more."""
    return await service.renew_codes(work, services, caller)
