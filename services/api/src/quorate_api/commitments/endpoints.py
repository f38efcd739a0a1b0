"""`/v1/commitments`."""

from fastapi import APIRouter, Request

from quorate_api.commitments import service
from quorate_api.commitments.schemas import Commitment, Commitments, NewCommitment
from quorate_api.http.idempotency import key_of
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute

router = APIRouter(prefix="/v1/commitments", tags=["billing"], route_class=ScopedRoute)


@router.get("")
async def list_commitments(work: Transaction, caller: Caller) -> Commitments:
    """The organization's commitments, and the terms that can be committed to."""
    return await service.listed(work, caller)


@router.post("", status_code=201)
async def make_commitment(asked: NewCommitment, request: Request, work: Transaction, caller: Caller) -> Commitment:
    """Commit to reservations from the next month on, for a discount. It cannot be called off.

    `Idempotency-Key` is required. People alone commit: API keys do not."""
    return await service.make(work, caller, asked, repeatable=key_of(request) is not None)
