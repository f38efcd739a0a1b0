"""The log of admissions, for operators: what was asked for, and why it was refused.

`http/route.py` has both noted: what was admitted in the transaction of the change, a refusal in one of its own.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import Request

from quorate_api import limits
from quorate_api.admissions.repository import AdmissionRepository, AllAdmissions
from quorate_api.admissions.schemas import Admission, AdmissionCount, AdmissionCounts, Outcome
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.http.services import services_of

OPERATIONS = frozenset({"create_group", "resize_group", "reset_group", "put_guarantee"})
REFUSALS = frozenset({Code.ADMISSION_REFUSED, Code.GUARANTEE_REFUSED, Code.QUOTA_EXCEEDED, Code.SPEND_CAP})


async def note_admitted(request: Request, work: Work) -> None:
    if _operation(request) in OPERATIONS:
        await AdmissionRepository(work.scope).add(**await _noted(request, "admitted"))


async def note_refused(request: Request, problem: Problem) -> None:
    """In a transaction of its own: the request's is undone."""
    principal: Principal | None = getattr(request.state, "principal", None)
    if principal is None or problem.code not in REFUSALS or _operation(request) not in OPERATIONS:
        return
    refusal = problem.refusal
    async with Work(services_of(request).engine) as work:
        await work.enter(principal.organization_id)
        await AdmissionRepository(work.scope).add(
            **await _noted(request, "refused"),
            code=problem.code.value,
            reason=None if refusal is None else refusal.reason,
            scarce_resource=None if refusal is None else refusal.scarce_resource,
            message=problem.detail[: limits.ADMISSION_MESSAGE_LENGTH_MAX],
        )


async def page(work: Work, outcome: Outcome | None, paging: Paging) -> Page[Admission]:
    rows = await AllAdmissions(work.connection).page(outcome, paging.after_id, paging.limit + 1)
    rows, cursor = paging.cut(rows)
    return Page(items=[Admission(**row._mapping) for row in rows], next_cursor=cursor)


async def counts(work: Work, hours: int) -> AdmissionCounts:
    since = datetime.now(UTC) - timedelta(hours=hours)
    rows = await AllAdmissions(work.connection).counts(since)
    return AdmissionCounts(since=since, items=[AdmissionCount(**row._mapping) for row in rows])


def _operation(request: Request) -> str:
    return str(request.scope["route"].name)


async def _noted(request: Request, outcome: Outcome) -> dict[str, Any]:
    return {
        "id": new_id(),
        "at": datetime.now(UTC),
        "operation": _operation(request),
        "subject": request.url.path,
        "asked": await _asked(request),
        "outcome": outcome,
    }


async def _asked(request: Request) -> Any:
    try:
        return json.loads(await request.body())
    except ValueError:
        return None
