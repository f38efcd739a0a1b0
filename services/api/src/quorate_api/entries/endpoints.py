"""`/v1/groups/{id}/entries`."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response
from pydantic import AwareDatetime

from quorate_api import limits
from quorate_api.entries import service
from quorate_api.entries.schemas import LogPage
from quorate_api.entries.service import Place
from quorate_api.http.answer import file_of
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import ScopedRoute

router = APIRouter(prefix="/v1/groups/{group_id}/entries", tags=["groups"], route_class=ScopedRoute)

OFFSET_MAX = 2**63 - 1
TIME_MIN, TIME_END = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)  # others overflow timestamps
Partition = Annotated[int, Query(ge=0, lt=limits.PARTITIONS_MAX)]


@router.get("")
async def list_entries(
    group_id: UUID,
    work: Transaction,
    services: Environment,
    caller: Caller,
    offset: Annotated[int | None, Query(ge=0, le=OFFSET_MAX, description="Begin with this entry.")] = None,
    at: Annotated[
        AwareDatetime | None,
        Query(ge=TIME_MIN, lt=TIME_END, description="Begin with the first entry of this time or later."),
    ] = None,
    partition: Partition = 0,
    limit: Annotated[int, Query(ge=1, le=limits.ENTRIES_MAX, description="Entries at most.")] = limits.ENTRIES_DEFAULT,
    wait_s: Annotated[
        float, Query(ge=0, le=limits.ENTRIES_WAIT_S_MAX, description="Wait for an entry at `offset`.")
    ] = 0.0,
) -> LogPage:
    """Look into the log: from an offset or a time on, or the newest entries. It counts as reads of the group.

    Programs read with an SDK, which is faster by far, and follows the log over failures.
    """
    place = Place(offset, at, limit, wait_s)
    return await service.page(work, services, caller, group_id, partition, place)


@router.get("/{offset}", **file_of("application/octet-stream", "The entry, as it was appended."))
async def get_entry(
    group_id: UUID,
    offset: Annotated[int, Path(ge=0, le=OFFSET_MAX)],
    work: Transaction,
    services: Environment,
    caller: Caller,
    partition: Partition = 0,
) -> Response:
    """One entry, as it was appended."""
    data = await service.one(work, services, caller, group_id, partition, offset)
    name = f"entry-{offset}.bin"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type="application/octet-stream", headers=headers)
