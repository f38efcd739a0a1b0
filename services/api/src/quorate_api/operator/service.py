"""The fleet, as the coordinator shows it. The API stores nothing of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

from quorate_api.coordinator.client import RequestInvalid
from quorate_api.coordinator.schemas import BalanceView, FleetView, ProjectGuaranteeView, Relocation, ServerView
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem, not_found
from quorate_api.groups.schemas import PlacedRelocation
from quorate_api.http.pagination import Paging
from quorate_api.http.services import Services
from quorate_api.operator.grants import read as read_grants
from quorate_api.operator.schemas import (
    Balance,
    Capacity,
    Guaranteed,
    Guarantees,
    JoinToken,
    JoinTokens,
    KnownJoinToken,
    Lending,
    Move,
    MovingGroup,
    NewJoinToken,
    Server,
    Servers,
    Sharing,
)

_CONFLICTS = {
    "server_alive": Code.SERVER_ALIVE,
    "too_many_join_tokens": Code.TOO_MANY_JOIN_TOKENS,
    "group_deleted": Code.MOVE_REFUSED,
    "group_moving": Code.MOVE_REFUSED,
    "group_not_whole": Code.MOVE_REFUSED,
    "no_replica": Code.MOVE_REFUSED,
    "no_room": Code.MOVE_REFUSED,
    "no_server": Code.MOVE_REFUSED,
}


@asynccontextmanager
async def _asking(work: Work) -> AsyncIterator[None]:
    try:
        async with work.outside():
            yield
    except RequestInvalid as error:
        code = _CONFLICTS.get(error.code, Code.VALIDATION_FAILED)
        errors = [FieldError(field=error.field or "body", message=str(error))]
        raise Problem(code, str(error), errors=errors) from error


async def servers(work: Work, services: Services, name: str | None) -> Servers:
    async with _asking(work):
        found = await services.coordinator.servers()
    return Servers(items=[_server(view) for view in found if name is None or view.name == name])


async def server(work: Work, services: Services, server_id: int) -> Server:
    async with _asking(work):
        found = await services.coordinator.server(server_id)
    return _server(found)


async def drain(work: Work, services: Services, server_id: int) -> Server:
    async with _asking(work):
        found = await services.coordinator.drain(server_id)
    return _server(found)


async def call_off(work: Work, services: Services, server_id: int) -> Server:
    async with _asking(work):
        found = await services.coordinator.call_off_drain(server_id)
    return _server(found)


async def give_up(work: Work, services: Services, server_id: int) -> None:
    async with _asking(work):
        known = await services.coordinator.forget_server(server_id)
    if not known:
        raise not_found("server")


async def capacity(work: Work, services: Services) -> Capacity:
    async with _asking(work):
        found: FleetView = await services.coordinator.capacity()
    return Capacity.model_validate(found.model_dump())


async def sharing(work: Work, services: Services) -> Sharing:
    async with _asking(work):
        found = await services.coordinator.sharing()
    if found is None:
        raise not_found("round of sharing")
    return Sharing(**found.model_dump(exclude={"ended_unix_ms"}), ended_at=_time(found.ended_unix_ms))


async def balance(work: Work, services: Services) -> Balance:
    async with _asking(work):
        found: BalanceView | None = await services.coordinator.balance()
    if found is None:
        raise not_found("round of balancing")
    shown = found.model_dump(exclude={"ended_unix_ms", "moves"})
    for change in shown["rate_changes"]:
        change["at"] = _time(change.pop("at_unix_ms"))
    moves = [_moving(one.group_id, one.project_id, one.relocation) for one in found.moves]
    return Balance.model_validate({**shown, "ended_at": _time(found.ended_unix_ms), "moves": moves})


async def move(work: Work, services: Services, group_id: UUID, asked: Move) -> MovingGroup:
    async with _asking(work):
        found = await services.coordinator.move(group_id, asked.from_server, asked.to_server)
    if found is None or found.project_id is None:
        raise not_found("group")
    if found.relocation is None:
        raise Problem(Code.MOVE_REFUSED, "The replica leaves this server already: it is drained, or counts as slow.")
    return _moving(group_id, found.project_id, found.relocation)


async def guarantees(work: Work, services: Services) -> Guarantees:
    async with _asking(work):
        found = await services.coordinator.guarantees()
    return Guarantees(items=[_guaranteed(view) for view in found])


async def grants(work: Work, services: Services, server_id: int | None, paging: Paging) -> Lending:
    async with _asking(work):
        fleet = await services.coordinator.servers()
        names = {view.server_id: view.name for view in fleet}
        found = await read_grants(services.redis, datetime.now(UTC), names)
    after = paging.after_id
    left = [
        one
        for one in found.items
        if (server_id is None or one.server_id == server_id) and (after is None or one.group_id.bytes > after.bytes)
    ]
    items, cursor = paging.cut(left, lambda one: one.group_id)
    return Lending(items=items, next_cursor=cursor, state=found.state)


async def join_token(work: Work, services: Services, asked: NewJoinToken) -> JoinToken:
    expires_at = datetime.now(UTC) + timedelta(seconds=asked.ttl_s)
    async with _asking(work):
        made = await services.coordinator.join_token(asked.ttl_s, asked.name, auxiliary=asked.auxiliary)
    return JoinToken(id=made.id, token=made.token, name=asked.name, auxiliary=asked.auxiliary, expires_at=expires_at)


async def join_tokens(work: Work, services: Services) -> JoinTokens:
    async with _asking(work):
        found = await services.coordinator.join_tokens()
    return JoinTokens(items=[KnownJoinToken.model_validate(view.model_dump()) for view in found])


async def revoke_join_token(work: Work, services: Services, token_id: str) -> None:
    async with _asking(work):
        known = await services.coordinator.revoke_join_token(token_id)
    if not known:
        raise not_found("join token")


def _moving(group_id: UUID, project_id: UUID, relocation: Relocation) -> MovingGroup:
    return MovingGroup(group_id=group_id, project_id=project_id, relocation=PlacedRelocation.of(relocation))


def _guaranteed(view: ProjectGuaranteeView) -> Guaranteed:
    def tokens(rates: list[int | None]) -> int:
        prices = (group.request_milli_tokens for group in view.groups)
        return sum(price * (rate or 0) for price, rate in zip(prices, rates, strict=True)) // 1_000

    terms = {"max_tokens_per_s": None, "policy": {}} | view.guarantee
    return Guaranteed.model_validate(
        {
            **terms,
            "project_id": view.project_id,
            "since": view.since,
            "groups": len(view.groups),
            "own_tokens_per_s": view.own_tokens_per_s,
            "wanted_tokens_per_s": tokens([group.wanted_per_s for group in view.groups]),
            "granted_tokens_per_s": tokens([group.share_per_s for group in view.groups]),
        }
    )


def _time(unix_ms: int | None) -> datetime | None:
    return None if unix_ms is None else datetime.fromtimestamp(unix_ms / 1_000, UTC)


def _server(view: ServerView | None) -> Server:
    if view is None:
        raise not_found("server")
    return Server.model_validate(view.model_dump())
