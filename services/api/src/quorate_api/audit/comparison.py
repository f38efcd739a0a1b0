"""The command `audit-compare`: whether the group and the database have the same events."""

from collections.abc import Sequence

from quorate import Client
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from quorate_api import limits
from quorate_api.audit import copies
from quorate_api.audit.chain import Linked
from quorate_api.audit.copies import Comparison, Copy, Name
from quorate_api.audit.repository import CopyRepository
from quorate_api.database.scope import EveryOrganization

REASON = "audit logs of all organizations are compared with their copies"


async def compare(engine: AsyncEngine, group: Client) -> Comparison:
    """Reads the whole group, and as many rows."""
    found = Comparison()
    async with engine.connect() as connection:
        repository = CopyRepository(EveryOrganization(connection, REASON))
        # Events that are committed later are not missed below: these are read first.
        newest, waiting = await repository.newest(), await repository.waiting(None)
        erased = frozenset(await repository.erased())
        status = await group.status()
        offset = status.trim_offset
        while offset < status.commit_offset:
            page = await group.read(offset, max_entries=limits.AUDIT_COPIES_AT_ONCE)
            offset = page.next_offset
            read = [copies.of_entry(entry.data) for entry in page.entries]
            found.take(read, await _stored(repository, connection, read), erased)
        found.finish(newest, waiting)
    return found


async def _stored(
    repository: CopyRepository, connection: AsyncConnection, read: Sequence[Copy | None]
) -> dict[Name, Linked]:
    named = [copy.name for copy in read if copy is not None]
    rows = {copy.name: copy.linked for copy in await repository.named(named)}
    await connection.rollback()  # no transaction is open while the group is read
    return rows
