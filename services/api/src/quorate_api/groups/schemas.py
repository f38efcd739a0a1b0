"""Groups: an SLA and a log, its handle, its placement and its events."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from quorate_api import limits
from quorate_api.admission.schemas import Partitions, SlaInput
from quorate_api.coordinator.schemas import Access, Charges, LatencyClass, ObservedSla, Relocation, Replica
from quorate_api.http.schemas import Input, Name, Output
from quorate_api.pricing.schemas import Price
from quorate_api.promises.schemas import SlaPromise

Status = Literal["provisioning", "active", "degraded", "paused", "lost", "deleting", "deleted"]


_NULL_SAYS_SOMETHING = ("min_replicas", "retention_age_s")


class NewGroup(SlaInput):
    name: Name
    partitions: Partitions = Field(
        1,
        description="Chains among which keys are divided. Rates and retention are those of all partitions together; "
        "order is kept within a partition.",
    )
    deletion_protection: bool = Field(
        False, description="While it is true, deleting the group is refused with `deletion_protected`."
    )


class GroupSettings(Input):
    """All of them: what is left out has its default."""

    name: Name
    deletion_protection: bool = Field(
        False, description="While it is true, deleting the group is refused with `deletion_protected`."
    )


class Resize(Input):
    """The fields of the SLA to change; the rest stays. Durability, replication degree and region never change."""

    rate_per_s: Annotated[int, Field(ge=1, le=limits.RATE_PER_S_MAX)] | None = Field(
        None, description="Reserved appends of request_size_bytes, each second; null: unchanged."
    )
    read_rate_per_s: Annotated[int, Field(ge=0, le=limits.RATE_PER_S_MAX)] | None = Field(
        None, description="Reserved reads of all replicas together, each second; 0: what is spare; null: unchanged."
    )
    request_size_bytes: Annotated[int, Field(ge=1, le=limits.REQUEST_SIZE_BYTES_MAX)] | None = Field(
        None, description="Size of a typical entry; null: unchanged."
    )
    min_replicas: Annotated[int, Field(ge=1, le=limits.REPLICATION_DEGREE_MAX)] | None = Field(
        None, description="Appends pause with fewer live replicas; null: a majority; left out: unchanged."
    )
    retention_bytes: Annotated[int, Field(ge=limits.RETENTION_BYTES_MIN, le=limits.RETENTION_BYTES_MAX)] | None = Field(
        None, description="How many of its newest bytes the log keeps; null: unchanged."
    )
    retention_age_s: Annotated[int, Field(ge=limits.RETENTION_AGE_S_MIN, le=limits.RETENTION_AGE_S_MAX)] | None = Field(
        None,
        description="Age at which entries are discarded; null: no limit on age; left out: unchanged.",
    )
    latency: LatencyClass | None = Field(None, description="The class of commit latency; null: unchanged.")
    partitions: Partitions | None = Field(
        None, description="More partitions than now: no entry moves, and order per key is kept; null: unchanged."
    )

    def changes(self) -> dict[str, int | str | None]:
        """The requested values of the SLA, by name."""
        given = self.model_dump(include=self.model_fields_set, exclude={"partitions"})
        return {name: value for name, value in given.items() if value is not None or name in _NULL_SAYS_SOMETHING}


class Reset(Input):
    """The epoch that the owner saw, so that a repetition, or a click on an old page, resets nothing twice."""

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


class HandleGuarantee(Output):
    """The project's guarantee, which all its groups share."""

    shared_tokens_per_s: int
    tokens_per_append: float = Field(description="Price of an append of the declared size.")
    shared_appends_per_s: int = Field(description="Beside the rate of the SLA, while no other group wants any.")


class HandleLayoutChange(Output):
    """A growth. Entries of keys that moved to new partitions lie before these ends of the others."""

    layout: int = Field(description="The layout that began.")
    from_partitions: int = Field(description="The number of partitions before.")
    to_partitions: int = Field(description="The number of partitions from then on.")
    ends: list[int] = Field(description="Offsets, of the partitions before, in order.")


class HandlePartition(Output):
    """One partition's chain: what a handle says of a group without partitions."""

    partition: int
    group_id: UUID
    epoch: int
    endpoints: list[Endpoint]
    token: str = Field(description="For this partition. Keep it secret.")
    rate_per_s: int = Field(description="The partition's part of the SLA.")
    charges: Charges | None


class HandlePartitions(Output):
    """The partitions of a group, and how keys find them (sdk/contract/partitions.md)."""

    key_hash: int = Field(description="The version of the hash. A client that does not know it must not append.")
    layout: int = Field(description="Rises when partitions are added.")
    changes: list[HandleLayoutChange] = Field(description="Growths, oldest first.")
    members: list[HandlePartition] = Field(description="All partitions in order.")


class HandleTls(Output):
    required: bool = Field(description="Whether servers refuse connections without TLS.")
    ca_pem: str = Field(description="The fleet's certificate authority in PEM, the only one to trust.")


class Handle(Output):
    """Addresses, token and limits with which a client reaches the data plane (sdk/contract/handle.md)."""

    group_id: UUID
    name: str
    epoch: int
    endpoints: list[Endpoint]
    token: str = Field(description="A JWT, signed with Ed25519. Keep it secret: its bearer may append and read.")
    token_expires_at: datetime
    sla: HandleSla
    charges: Charges | None = Field(
        None, description="The head's charges for batches; null while the coordinator does not say: no client paces."
    )
    limits: HandleLimits
    guarantee: HandleGuarantee | None = Field(None, description="null: the project has none that it shares.")
    partitions: HandlePartitions | None = Field(
        None, description="null: the group has one chain, which endpoints and token reach."
    )
    tls: HandleTls
    traceparent: str | None = Field(
        None, description="Trace context of the request that issued the handle, if that was traced."
    )


class AskedResize(Output):
    """A resize that was asked for, and begins once replicas have moved to servers with room for it."""

    sla: ObservedSla
    price: Price = Field(description="From the time at which the SLA begins.")


class Group(Output):
    id: UUID
    project_id: UUID
    name: str
    sla: ObservedSla = Field(description="The SLA of all partitions together.")
    partitions: int = Field(1, description="Chains among which keys are divided, with those that are being added.")
    partition_of: UUID | None = Field(None, description="The group that this is a partition of, if it is one.")
    partition: int | None = Field(None, description="Its number there.")
    promise: SlaPromise
    deletion_protection: bool = Field(False, description="Whether deleting the group is refused.")
    status: Status
    access: Access = Field(
        description="What clients may use, as spend caps leave it: reserved is the reservation without burst "
        "capacity; suspended: neither appends nor reads."
    )
    epoch: int
    price: Price = Field(description="The price agreed when the group was created or last resized.")
    resizing: AskedResize | None = Field(None, description="A resize that has yet to begin; null: there is none.")
    created_at: datetime
    observed_at: datetime | None = Field(description="When status and epoch were last confirmed.")


class CreatedGroup(Group):
    handle: Handle | None = Field(
        description="null while the group is provisioning, and for callers without permission to append or read."
    )


class OperationCost(Output):
    """The cost of one entry, for the server that takes it."""

    operation: Literal["append", "read", "catch_up"] = Field(
        description="append: at the head; read: an entry in memory, at any replica; catch_up: one on its disk."
    )
    size_bytes: int
    entries: int = Field(description="Entries of the batch or page that it comes in: 1, or as many as are measured.")
    counts_as: float = Field(
        description="So many appends, or reads, of the declared size in a full batch or page: the reservation's unit."
    )
    cpu_ns: int
    network_bytes: int
    storage_operations: float


class GroupCosts(Output):
    """The group's virtual cost functions: how much of its reservation an operation takes."""

    request_size_bytes: int = Field(description="The declared size.")
    operations: list[OperationCost]


class PlacedReplica(Output):
    server_id: int
    server_name: str
    address: str
    role: str
    alive: bool
    failure_domain: str | None = Field(description="As of a zone or a rack; null: its server has none.")

    @classmethod
    def of(cls, replica: Replica) -> "PlacedReplica":
        return cls(**replica.model_dump())


class PlacedMove(Output):
    """A replica leaves a server once its replacement on another has caught up."""

    from_server: int
    to_server: int


class PlacedRelocation(Output):
    """Replicas that move, one after the other. The group keeps all its replicas meanwhile."""

    cause: str = Field(description="resize, demand, capacity or operator")
    since: datetime
    moves: list[PlacedMove] = Field(description="Still to be done, in order; empty: they wait for room.")
    scarce_resource: str | None = Field(description="The resource that they wait for, if they do.")

    @classmethod
    def of(cls, relocation: Relocation) -> "PlacedRelocation":
        return cls(**relocation.model_dump(exclude={"next_revision"}))


class Placement(Output):
    """The chain, head first; the tail closes the ring back to the head."""

    epoch: int
    status: Status
    replicas: list[PlacedReplica]
    learners: list[PlacedReplica] = Field(description="Replacements that are catching up.")
    relocation: PlacedRelocation | None = Field(description="Replicas on their way to other servers; null: none are.")
    observed_at: datetime | None


class PlacedPartition(Output):
    """A partition with its chain, which is a group of its own for usage, SLA reports and events."""

    partition: int
    group_id: UUID
    status: Status
    epoch: int
    rate_per_s: int = Field(description="Its part of the SLA.")
    wanted_per_s: int | None = Field(
        description="Appends/s of the declared size that come now, or that clients would send if they were let; null: "
        "its head has not said lately."
    )
    hourly_micros: int = Field(description="Its part of the price.")
    replicas: list[PlacedReplica]
    learners: list[PlacedReplica]
    relocation: PlacedRelocation | None = Field(description="A replica on its way to another server; null: none is.")
    in_use: bool = Field(description="false: it was added, and clients do not use it yet.")


class GroupPartitions(Output):
    key_hash: int = Field(description="The version of the hash that finds a key's partition.")
    layout: int
    is_changing: bool = Field(description="A change was asked for, and is not carried out yet.")
    items: list[PlacedPartition]


class GroupEvent(Output):
    id: str
    at: datetime
    kind: str
    message: str
    epoch: int | None
    status: str | None
    server_id: int | None
