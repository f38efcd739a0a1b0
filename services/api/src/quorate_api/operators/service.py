"""Sessions of operators, and their audit log."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.audit import chain
from quorate_api.audit.repository import OperatorAuditRepository
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.http.pagination import Paging
from quorate_api.http.schemas import Page
from quorate_api.http.services import Services
from quorate_api.http.staff import StaffCaller
from quorate_api.operators.schemas import CreatedOperatorSession, NewOperatorSession, OperatorEvent
from quorate_api.security import operator_sessions
from quorate_api.security.operator_sessions import OperatorSession


def begin(services: Services, caller: StaffCaller, asked: NewOperatorSession) -> CreatedOperatorSession:
    if caller.until is not None:
        raise Problem(Code.PERMISSION_DENIED, "A session makes no other one: use a long-lived operator's token.")
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=asked.ttl_s)
    token = operator_sessions.issue(services.keys, OperatorSession(new_id(), asked.name, until))
    return CreatedOperatorSession(token=token, name=asked.name, expires_at=until)


async def page(work: Work, paging: Paging) -> Page[OperatorEvent]:
    rows = await OperatorAuditRepository(work.connection).page(paging.limit + 1, paging.after_number)
    rows, cursor = paging.cut(rows, lambda row: row.seq)
    return Page(items=[_shown(row) for row in rows], next_cursor=cursor)


async def export(services: Services) -> AsyncIterator[str]:
    """In the form of organizations' logs: `quorate-api audit-verify` checks it, too."""
    seq = 0
    while True:
        async with Work(services.engine) as work:
            rows = await OperatorAuditRepository(work.connection).after(seq, limits.AUDIT_EXPORT_ROWS)
        if not rows:
            return
        yield "".join(chain.exported(row.seq, row.hash, row.event) for row in rows)
        seq = rows[-1].seq


def _shown(row: Row[Any]) -> OperatorEvent:
    event = json.loads(row.event)
    data = event["data"]
    return OperatorEvent(
        seq=row.seq,
        at=row.at,
        operation=event["type"].removeprefix(chain.TYPE),
        subject=event["subject"],
        operator=data["actor"]["name"],
        session=data["actor"]["credential"],
        address=data["address"],
        request_id=data["request_id"],
        request=data["request"],
        hash=row.hash.hex(),
    )
