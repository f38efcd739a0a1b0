"""Reading the events of the caller's organization."""

from quorate_api.access.permissions import Permission
from quorate_api.database.work import Work
from quorate_api.events.catalogue import EventType
from quorate_api.events.message import message_id
from quorate_api.events.repository import EventRepository
from quorate_api.events.schemas import ListedEvent
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page


async def page(work: Work, principal: Principal, paging: Paging, kind: EventType | None) -> Page[ListedEvent]:
    principal.require(Permission.ADMINISTER)
    rows = await EventRepository(work.scope).page(paging.limit + 1, paging.after_number, kind.value if kind else None)
    rows, cursor = paging.cut(rows, lambda row: row.seq)
    items = [ListedEvent(id=message_id(row.id), type=row.type, timestamp=row.at, data=row.data) for row in rows]
    return Page(items=items, next_cursor=cursor)
