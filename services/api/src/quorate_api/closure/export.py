"""Everything that is kept of an organization, as JSON lines. The last line tells that nothing is missing."""

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import date, datetime
from typing import Any
from uuid import UUID

from quorate_api import limits
from quorate_api.closure.repository import EXPORTED, ExportRepository
from quorate_api.database.work import Work
from quorate_api.http.services import Services


async def lines(services: Services, organization_id: UUID) -> AsyncIterator[str]:
    """`{"table":…,"row":{…}}`, and at the end `{"end":{"lines":…,"sha256":…}}` of all bytes before it."""
    digest, count = hashlib.sha256(), 0
    # All tables as they were at one moment.
    async with Work(services.engine.execution_options(isolation_level="REPEATABLE READ")) as work:
        await work.enter(organization_id)
        repository = ExportRepository(work.scope)
        for table in EXPORTED:
            async for rows in repository.rows(table, limits.EXPORT_ROWS):
                text = "".join(
                    json.dumps({"table": table, "row": row}, ensure_ascii=False, default=_plain) + "\n" for row in rows
                )
                digest.update(text.encode())
                count += len(rows)
                yield text
    yield json.dumps({"end": {"lines": count, "sha256": digest.hexdigest()}}) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise AssertionError(f"no form for {type(value)}")
