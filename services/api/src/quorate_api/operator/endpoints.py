"""`/v1/operator`: the fleet, for its operators."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response

from quorate_api.http.pagination import OperatorPageParameters
from quorate_api.http.principal import Environment, Transaction
from quorate_api.http.route import OperatorRoute
from quorate_api.http.schemas import Page
from quorate_api.operator import hosted, price_lists, service
from quorate_api.operator.schemas import (
    Balance,
    Capacity,
    Guarantees,
    HostedReplica,
    JoinToken,
    JoinTokens,
    Lending,
    Move,
    MovingGroup,
    NewJoinToken,
    PriceLists,
    Server,
    Servers,
    Sharing,
)

router = APIRouter(prefix="/v1/operator", tags=["operator"], route_class=OperatorRoute)

ServerNumber = Annotated[int, Path(ge=1, le=2**32 - 1)]


@router.get("/servers")
async def list_servers(
    work: Transaction,
    services: Environment,
    name: Annotated[str | None, Query(max_length=200, description="Only the server of this name.")] = None,
) -> Servers:
    """The fleet's servers, failed ones included. Servers removed from the fleet are left out."""
    return await service.servers(work, services, name)


@router.get("/servers/{server_id}")
async def get_server(server_id: ServerNumber, work: Transaction, services: Environment) -> Server:
    """One server."""
    return await service.server(work, services, server_id)


@router.get("/servers/{server_id}/replicas")
async def list_hosted_replicas(
    server_id: ServerNumber, work: Transaction, paging: OperatorPageParameters
) -> Page[HostedReplica]:
    """The replicas on a server, of the newest groups first, as last observed."""
    return await hosted.page(work, server_id, paging)


@router.get("/prices")
async def list_prices() -> PriceLists:
    """The price lists, the one that holds now among them. A release of the API changes them."""
    return price_lists.all_of_them()


@router.delete("/servers/{server_id}", status_code=204)
async def give_up_server(server_id: ServerNumber, work: Transaction, services: Environment) -> Response:
    """Remove a failed server for good: neither it nor its disk will come back. Its name is free then."""
    await service.give_up(work, services, server_id)
    return Response(status_code=204)


@router.post("/servers/{server_id}/drain")
async def drain_server(server_id: ServerNumber, work: Transaction, services: Environment) -> Server:
    """Move every replica off the server. `drain` in this answer and in later ones shows the progress."""
    return await service.drain(work, services, server_id)


@router.delete("/servers/{server_id}/drain")
async def call_off_drain(server_id: ServerNumber, work: Transaction, services: Environment) -> Server:
    """Cancel a drain."""
    return await service.call_off(work, services, server_id)


@router.get("/capacity")
async def get_capacity(work: Transaction, services: Environment) -> Capacity:
    """The fleet's capacity: nominal, promisable, allocated and free."""
    return await service.capacity(work, services)


@router.get("/sharing")
async def get_sharing(work: Transaction, services: Environment) -> Sharing:
    """The last round of sharing burst capacity: its policy, and how many groups got what they want."""
    return await service.sharing(work, services)


@router.get("/balance")
async def get_balance(work: Transaction, services: Environment) -> Balance:
    """Rates of partitions and replicas that follow the load: what changed and moves, and why."""
    return await service.balance(work, services)


@router.post("/groups/{group_id}/moves")
async def move_replica(group_id: UUID, asked: Move, work: Transaction, services: Environment) -> MovingGroup:
    """Move one replica of a group, or of a partition, to another server. It leaves once its replacement has caught
    up; `GET /v1/operator/balance` shows that. Repeating it changes nothing while the replica moves."""
    return await service.move(work, services, group_id, asked)


@router.get("/guarantees")
async def list_guarantees(work: Transaction, services: Environment) -> Guarantees:
    """The guarantees of all projects that have one: their policies, and how much of them is used."""
    return await service.guarantees(work, services)


@router.get("/lending")
async def list_lending(
    work: Transaction,
    services: Environment,
    paging: OperatorPageParameters,
    server_id: Annotated[
        int | None, Query(ge=1, le=2**32 - 1, description="Only groups whose head is on this server.")
    ] = None,
) -> Lending:
    """Burst capacity: the grants of groups above their SLAs, their bounds, and the unused parts of reservations."""
    return await service.grants(work, services, server_id, paging)


@router.post("/join-tokens", status_code=201)
async def create_join_token(asked: NewJoinToken, work: Transaction, services: Environment) -> JoinToken:
    """Create a token with which one server joins the fleet, once. It is in this answer only."""
    return await service.join_token(work, services, asked)


@router.get("/join-tokens")
async def list_join_tokens(work: Transaction, services: Environment) -> JoinTokens:
    """The join tokens on record: outstanding, used, expired and revoked ones."""
    return await service.join_tokens(work, services)


@router.delete("/join-tokens/{token_id}", status_code=204)
async def revoke_join_token(
    token_id: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")], work: Transaction, services: Environment
) -> Response:
    """Revoke a join token: no server joins with it from now on. A server that has joined with it stays."""
    await service.revoke_join_token(work, services, token_id)
    return Response(status_code=204)
