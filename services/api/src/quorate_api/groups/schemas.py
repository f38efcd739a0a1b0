"""Groups: an SLA and a log; how to reach it; where it is; what happened to it."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from quorate_api.coordinator.schemas import ObservedSla, Replica
from quorate_api.http.schemas import Input, Name, Output
from quorate_api.quotes.schemas import Price, SlaInput

Status = Literal["provisioning", "active", "degraded", "paused", "lost", "deleting", "deleted"]


class NewGroup(SlaInput):
    name: Name


class Reset(Input):
    """What the owner saw: so that a repetition, or a click on an old page, gives up nothing twice."""

    epoch: Annotated[int, Field(ge=1, le=2**53, description="The group's epoch when it was seen lost.")]


class Endpoint(Output):
    server_id: int
    address: str
    role: str = Field(description="head, follower, tail or sole")


class HandleSla(Output):
    durability: str
    replication_degree: int
    request_size_bytes: int
    rate_per_s: int


class HandleLimits(Output):
    max_entry_bytes: int
    max_batch_bytes: int
    max_batch_entries: int
    window_batches: int


class HandleTls(Output):
    required: bool = Field(description="Whether servers refuse connections without TLS.")
    ca_pem: str = Field(description="The fleet's certificate authority, in PEM: the only one to trust.")


class Handle(Output):
    """All that a client needs to reach the data plane (sdk/contract/handle.md)."""

    group_id: UUID
    name: str
    epoch: int
    endpoints: list[Endpoint]
    token: str = Field(description="A JWT, signed with Ed25519. A secret: whoever has it may append and read.")
    token_expires_at: datetime
    sla: HandleSla
    limits: HandleLimits
    tls: HandleTls
    traceparent: str | None = Field(None, description="Of the request that issued the handle, when it was traced.")


class Group(Output):
    id: UUID
    project_id: UUID
    name: str
    sla: ObservedSla
    status: Status
    epoch: int
    price: Price = Field(description="As agreed when the group was created.")
    created_at: datetime
    observed_at: datetime | None = Field(description="When status and epoch were last confirmed.")


class CreatedGroup(Group):
    handle: Handle | None = Field(
        description="null while the group is still provisioning, and for callers who may neither append nor read."
    )


class PlacedReplica(Output):
    server_id: int
    server_name: str
    address: str
    role: str
    alive: bool

    @classmethod
    def of(cls, replica: Replica) -> "PlacedReplica":
        return cls(**replica.model_dump())


class Placement(Output):
    """The chain, head first; the tail closes the ring back to the head."""

    epoch: int
    status: Status
    replicas: list[PlacedReplica]
    learners: list[PlacedReplica] = Field(description="Replacements that are catching up.")
    observed_at: datetime | None


class GroupEvent(Output):
    id: str
    at: datetime
    kind: str
    message: str
    epoch: int | None
    status: str | None
    server_id: int | None
