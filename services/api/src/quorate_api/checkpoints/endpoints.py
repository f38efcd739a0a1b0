"""`/v1/groups/{id}/checkpoints`."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Response

from quorate_api.checkpoints import service
from quorate_api.checkpoints.schemas import Checkpoint, Consumer, NewCheckpoint
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute

router = APIRouter(prefix="/v1/groups/{group_id}/checkpoints", tags=["groups"], route_class=ScopedRoute)

Named = Annotated[Consumer, Path(description="The consumer's name, of your choice.")]


@router.get("")
async def list_checkpoints(group_id: UUID, work: Transaction, caller: Caller) -> list[Checkpoint]:
    """How far each consumer has come. At most 64 consumers have checkpoints."""
    return await service.all_of(work, caller, group_id)


@router.get("/{consumer}")
async def get_checkpoint(group_id: UUID, consumer: Named, work: Transaction, caller: Caller) -> Checkpoint:
    """How far a consumer has come, by partition. It has no offsets before the first is saved."""
    return await service.get(work, caller, group_id, consumer)


@router.put("/{consumer}")
async def save_checkpoint(
    group_id: UUID, consumer: Named, asked: NewCheckpoint, work: Transaction, caller: Caller
) -> Checkpoint:
    """Save how far a consumer has come. An offset below the saved one is ignored, unless `rewind` says otherwise."""
    return await service.save(work, caller, group_id, consumer, asked)


@router.delete("/{consumer}", status_code=204)
async def delete_checkpoint(group_id: UUID, consumer: Named, work: Transaction, caller: Caller) -> Response:
    """Forget a consumer."""
    await service.delete(work, caller, group_id, consumer)
    return Response(status_code=204)
