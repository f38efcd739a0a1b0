"""Replicas on a server, as the API has last observed them."""

from quorate_api.database.work import Work
from quorate_api.http.pagination import Paging
from quorate_api.http.schemas import Page
from quorate_api.operator.repository import HostedRepository
from quorate_api.operator.schemas import HostedReplica


async def page(work: Work, server_id: int, paging: Paging) -> Page[HostedReplica]:
    rows = await HostedRepository(work.connection).page(server_id, paging.after_id, paging.limit + 1)
    rows, cursor = paging.cut(rows, lambda row: row.group_id)
    return Page(items=[HostedReplica(**row._mapping) for row in rows], next_cursor=cursor)
