"""Recording changes, and reading the log.

Each change is recorded in its own transaction, by the one place through which all requests go (`http/route.py`): no
endpoint can forget it.
"""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from sqlalchemy import Row

from quorate_api import limits
from quorate_api.access.permissions import Permission
from quorate_api.audit import chain
from quorate_api.audit.repository import AuditRepository, OperatorAuditRepository
from quorate_api.audit.schemas import Actor, AuditEvent
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.events.catalogue import AuditRecorded, EventType
from quorate_api.events.repository import EventRepository
from quorate_api.http.client import client_of
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.http.services import Services
from quorate_api.http.staff import StaffCaller
from quorate_api.keys.repository import KeyRepository
from quorate_api.users.repository import UserRepository

OPERATOR = "operator"
# They change nothing that a person decides: dry runs, and places of consumers, which are saved many times a second.
NOT_RECORDED = frozenset({"create_quote", "quote_guarantee", "save_checkpoint"})


async def record(request: Request, work: Work, response: Response) -> None:
    """Record a change that has been made, at the end of its transaction. An operator's is in two logs."""
    operation = request.scope["route"].name
    actor = await _actor_of(request, work)
    if operation in NOT_RECORDED or actor is None:
        return
    client, now = client_of(request), datetime.now(UTC)
    created_id = _created(response)
    data = {
        "actor": actor,
        "address": client.address,
        "user_agent": client.user_agent,
        "request_id": request.state.request_id,
        "request": _shown_body(request.scope["route"], await request.body()),
        "created_id": created_id,
    }
    event = {
        "specversion": "1.0",
        "id": str(new_id()),
        "type": f"{chain.TYPE}{operation}",
        "subject": request.url.path,
        "time": now.isoformat(),
        "datacontenttype": "application/json",
        "data": data,
    }
    if actor["kind"] == OPERATOR:
        await _append(OperatorAuditRepository(work.connection), event | {"source": "/operators"}, now)
    if work.has_scope:
        source = f"/organizations/{work.scope.organization_id}"
        seq = await _append(AuditRepository(work.scope), event | {"source": source}, now)
        told = AuditRecorded(
            seq=seq,
            operation=operation,
            subject=request.url.path,
            actor_kind=actor["kind"],
            actor_id=actor["id"],
            actor_name=actor["name"],
            created_id=created_id,
        )
        await EventRepository(work.scope).add(work.scope.organization_id, EventType.AUDIT_RECORDED, str(seq), told, now)


async def _append(log: AuditRepository | OperatorAuditRepository, event: dict[str, Any], now: datetime) -> int:
    """The event's number in the log."""
    await log.lock()
    last = await log.last()
    seq, before = (last.seq, last.hash) if last is not None else (0, chain.BEGIN)
    text = chain.text_of(event)
    await log.add(seq + 1, now, text, chain.hash_of(before, text))
    return seq + 1


async def _actor_of(request: Request, work: Work) -> dict[str, Any] | None:
    """The author of the change. None: it is nobody's, or a prober's report."""
    staff: StaffCaller | None = getattr(request.state, "staff", None)
    if staff is not None:
        credential = None if staff.session is None else str(staff.session)
        is_operator = staff.staff == "operator"
        return (
            {"kind": OPERATOR, "id": staff.name, "name": staff.name, "credential": credential} if is_operator else None
        )
    person: dict[str, Any] | None = getattr(request.state, "person", None)  # whose session has begun
    if not work.has_scope or person is not None:
        return person
    principal: Principal | None = getattr(request.state, "principal", None)
    return None if principal is None else await _actor(work, principal)


async def page(work: Work, principal: Principal, paging: Paging) -> Page[AuditEvent]:
    principal.require(Permission.ADMINISTER)
    rows = await AuditRepository(work.scope).page(paging.limit + 1, paging.after_number)
    rows, cursor = paging.cut(rows, lambda row: row.seq)
    return Page(items=[_shown(row) for row in rows], next_cursor=cursor)


async def export(services: Services, principal: Principal) -> AsyncIterator[str]:
    """A line of JSON for each event, oldest first: what `quorate-api audit-verify` checks."""
    seq = 0
    while True:
        async with Work(services.engine) as work:
            await work.enter(principal.organization_id)
            rows = await AuditRepository(work.scope).after(seq, limits.AUDIT_EXPORT_ROWS)
        if not rows:
            return
        yield "".join(chain.exported(row.seq, row.hash, row.event) for row in rows)
        seq = rows[-1].seq


async def _actor(work: Work, principal: Principal) -> dict[str, Any]:
    if principal.user_id is not None:
        name = (await UserRepository(work.connection).by_id(principal.user_id)).email
    else:
        key = await KeyRepository(work.scope).get(principal.id)
        name = key.name if key is not None else ""
    kind = "person" if principal.user_id is not None else "key"
    return {"kind": kind, "id": str(principal.id), "name": name, "credential": str(principal.credential.id)}


def _shown_body(route: APIRoute, raw: bytes) -> Any:
    """The body without secrets; a long one as text, cut. None: the operation takes none, and has checked none."""
    if route.body_field is None or not raw:
        return None
    try:
        found = chain.redacted(json.loads(raw))
        text = chain.text_of(found)
        text.encode()  # fails for half of a surrogate pair, which no database stores
    except (ValueError, RecursionError):
        return chain.REDACTED
    if len(text) <= limits.AUDIT_REQUEST_CHARACTERS_MAX:
        return found
    return text[: limits.AUDIT_REQUEST_CHARACTERS_MAX] + chain.REDACTED


def _created(response: Response) -> str | None:
    if response.status_code != 201 or not response.body:
        return None
    found = json.loads(bytes(response.body))
    return str(found["id"]) if isinstance(found, dict) and "id" in found else None


def _shown(row: Row[Any]) -> AuditEvent:
    event = json.loads(row.event)
    data = event["data"]
    return AuditEvent(
        seq=row.seq,
        at=row.at,
        operation=event["type"].removeprefix(chain.TYPE),
        subject=event["subject"],
        actor=Actor(**data["actor"]),
        address=data["address"],
        user_agent=data["user_agent"],
        request_id=data["request_id"],
        request=data["request"],
        created_id=data["created_id"],
        hash=row.hash.hex(),
    )
