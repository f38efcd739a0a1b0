"""Messages between the API and the coordinator (docs/internals/coordinator.md). Customers see parts of them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


class Durability(StrEnum):
    PERSISTENT = "persistent"
    IN_MEMORY = "in_memory"


LatencyClass = Literal["standard", "low"]
Access = Literal["full", "reserved", "suspended"]


class ObservedSla(BaseModel):
    """An SLA as it stands, with every field set."""

    durability: Durability
    replication_degree: int
    min_replicas: int | None = Field(None, description="null: a majority of replication_degree")
    request_size_bytes: int
    rate_per_s: int
    read_rate_per_s: int = Field(0, description="0: reads have what is spare")
    region: str
    retention_bytes: int
    retention_age_s: int | None = Field(None, description="null: no entry is discarded for its age")
    latency: LatencyClass = "standard"


class ResourceDemand(BaseModel):
    """Amounts of each resource. A coordinator of an earlier version leaves out memory and disk."""

    cpu: Annotated[float, Field(ge=0, allow_inf_nan=False, description="cores")]
    network_bytes_per_s: Annotated[float, Field(ge=0, allow_inf_nan=False, description="in plus out")]
    storage_io_per_s: Annotated[float, Field(ge=0, allow_inf_nan=False, description="operations")]
    memory_bytes: Annotated[int, Field(ge=0, description="held as long as the group exists")] = 0
    disk_bytes: Annotated[int, Field(ge=0, description="held as long as the group exists")] = 0


class Rates(BaseModel):
    """Amounts of the resources that are rates, as the coordinator counts them."""

    cpu: float = Field(description="cores")
    network_bytes_per_s: float = Field(description="in plus out")
    storage_io_per_s: float = Field(description="operations")


class Amounts(Rates):
    """Amounts of each resource, as the coordinator counts them."""

    memory_bytes: int | None = Field(
        None, description="null: a server does not say how much it has, and is not limited"
    )
    disk_bytes: int | None = Field(None, description="null: a server does not say how much it has, and is not limited")


class ReplicaDemand(ResourceDemand):
    role: str


class Refusal(BaseModel):
    """The reason why an SLA cannot be promised, and the nearest SLA that can."""

    model_config = ConfigDict(extra="ignore")

    reason: str = Field(
        description="insufficient_capacity, beyond_shard_peak, too_few_servers, too_many_groups, unknown_region, "
        "beyond_guarantee or latency_not_kept"
    )
    scarce_resource: str = Field(
        description="cpu, network, storage_io, memory, disk, servers, shard, groups, guarantee or latency"
    )
    message: str = Field(description="A sentence for people.")
    largest_sla_that_fits: ObservedSla | None = Field(
        None,
        description="An SLA with a lower rate, a shorter retention or another latency class that would fit. "
        "It is found by halving, so a larger one may fit too.",
    )


class GuaranteeRefusal(BaseModel):
    scarce_resource: str
    message: str
    largest_shared_tokens_per_s: int


class GuaranteeQuote(BaseModel):
    admissible: bool
    refusal: GuaranteeRefusal | None = None


class GuaranteedGroupView(BaseModel):
    """A group, with the price of a request of its declared size. Null rates are not known."""

    group_id: UUID
    request_milli_tokens: Annotated[int, Field(ge=1)]
    own_tokens_per_s: int
    wanted_per_s: int | None = None
    share_per_s: int | None = None


class GuaranteeView(BaseModel):
    revision: int
    since: datetime | None = None
    own_tokens_per_s: int
    groups: list[GuaranteedGroupView]


class ProjectGuaranteeView(GuaranteeView):
    project_id: UUID
    guarantee: dict[str, Any]


class PartDemand(BaseModel):
    """A partition's part of the SLA, and the demand of all its replicas."""

    sla: ObservedSla
    demand: ResourceDemand


class Quote(BaseModel):
    admissible: bool
    demand: list[ReplicaDemand]
    total_demand: ResourceDemand
    dominant_resource: str | None = None
    refusal: Refusal | None = None
    profile_version: str | None = None
    commit_p99_us: int | None = Field(None, description="As the cost profile was measured; null: it was not.")
    failure_domains: int = Field(0, description="Different ones in which the replicas would be placed.")
    moves: int = Field(0, description="Replicas that move before the SLA of a resize begins.")
    parts: list[PartDemand] = []  # of a group with partitions, in order


class Replica(BaseModel):
    server_id: int
    server_name: str = Field(alias="name")
    address: str
    role: str
    alive: bool
    failure_domain: str | None = None

    model_config = ConfigDict(populate_by_name=True)


GroupStatus = Literal["provisioning", "active", "degraded", "paused", "lost", "deleting"]


class Authority(BaseModel):
    """The fleet's certificate authority, which clients of the data plane trust."""

    ca_pem: str
    sha256: str


Tokens = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=3, max_length=3)]
"""Thousandths of tokens of CPU, network and storage."""


class EntryCost(BaseModel):
    """The cost of an entry, and of each of its bytes."""

    fixed_milli: Tokens
    per_byte_milli: Tokens


class ShortBatch(BaseModel):
    """A batch of fewer entries costs something for each one that it lacks."""

    entries: Annotated[int, Field(ge=0)]
    lacking_milli: Tokens


class Charges(BaseModel):
    """The head's charges for batches, and the rates that fill its buckets (sdk/contract/pacing.md)."""

    rate_per_s: Annotated[int, Field(ge=1, description="The rate at which the buckets get tokens_per_s_milli.")]
    tokens_per_s_milli: Tokens
    cost: EntryCost
    short_batch: ShortBatch


class ReadCharges(BaseModel):
    """The cost of reads at each replica, and what is reserved for them."""

    rate_per_s: Annotated[int, Field(ge=0)]
    reserved_milli: Tokens
    cost: EntryCost
    short_page: ShortBatch
    from_disk: EntryCost  # beside the cost from memory


class Move(BaseModel):
    from_server: int = Field(validation_alias="from")
    to_server: int = Field(validation_alias="to")


class Relocation(BaseModel):
    """Replicas that move, one after the other."""

    cause: str
    since: datetime
    moves: list[Move] = Field(description="Still to be done, in order.")
    next_revision: int | None = Field(None, description="Of the SLA that begins after the last move.")
    scarce_resource: str | None = Field(None, description="A resize waits for it.")


class GroupView(BaseModel):
    group_id: UUID
    project_id: UUID | None = None
    sla: ObservedSla
    status: GroupStatus
    epoch: int
    replicas: list[Replica]
    learners: list[Replica] = []
    access: Access = "full"  # a coordinator of an earlier version does not say
    shared_tokens_per_s: int = Field(0, description="Of the project's guarantee; an older coordinator does not say.")
    request_milli_tokens: Annotated[int, Field(ge=1)] | None = None
    charges: Charges | None = None  # likewise
    reads: ReadCharges | None = None  # likewise
    sla_since: datetime | None = None  # time at which this SLA took effect
    relocation: Relocation | None = None
    created_at: datetime | None = None

    def awaits(self, revision: int) -> bool:
        """Whether replicas move before this revision of the SLA begins."""
        return self.relocation is not None and self.relocation.next_revision == revision


class LayoutChange(BaseModel):
    """Partitions were added. Entries of keys that moved to new partitions lie before these ends."""

    layout: int = Field(description="The layout that began.")
    from_partitions: int = Field(validation_alias="from")
    to_partitions: int = Field(validation_alias="to")
    ends: list[int] = Field(description="Offsets, of the partitions before.")


class PartitionsView(BaseModel):
    group_id: UUID
    sla: ObservedSla
    revision: int
    since: datetime
    layout: int
    in_use: int
    changes: list[LayoutChange]
    partitions: list[GroupView]
    wanted_per_s: list[int | None] = []  # in order; an older coordinator does not say


class ResourcesView(BaseModel):
    nominal: Amounts
    promisable: Amounts
    allocated: Amounts
    free: Amounts


class FleetView(ResourcesView):
    servers_alive: int
    safety_factor: float
    profile_version: str
    profile_provisional: bool


class SharingView(BaseModel):
    policy: str
    rounds: int
    servers: int
    groups_wanting: int
    groups_satisfied: int
    took_us: int
    ended_unix_ms: int | None = None


class PressureView(BaseModel):
    server_id: int
    cause: str
    partition: UUID | None = None
    lacking: Rates


class RateChangeView(BaseModel):
    at_unix_ms: int
    group_id: UUID
    is_swapped: bool
    rates: list[int]


class RelocatingView(BaseModel):
    group_id: UUID
    project_id: UUID
    relocation: Relocation


class BalanceView(BaseModel):
    rounds: int
    ended_unix_ms: int | None = None
    partitions: int
    pressures: list[PressureView]
    rate_changes: list[RateChangeView]
    moves: list[RelocatingView]


class DrainView(BaseModel):
    state: Literal["draining", "drained"]
    since: datetime
    drained_at: datetime | None = None
    moving: int
    waiting: int
    scarce_resource: str | None = None
    message: str


class CapacityEstimateView(BaseModel):
    capacity: float
    phase: str
    is_measured: bool
    lasting_permille: int


class EstimatedView(BaseModel):
    cpu: CapacityEstimateView | None = None
    storage_io: CapacityEstimateView | None = None


class ServerView(BaseModel):
    server_id: int
    name: str
    address: str
    region: str
    failure_domain: str | None = None
    auxiliary: bool
    alive: bool
    storage_fault: str | None = None
    version: str
    resources: ResourcesView
    replicas: int
    slow: str | None = None
    machine: str | None = None
    foreign: str | None = None
    takes_replicas: bool
    draining: bool
    drain: DrainView | None = None
    estimated: EstimatedView | None = None
    registered_at: datetime
    failed_at: datetime | None = None


class IssuedToken(BaseModel):
    id: str
    token: str


class JoinTokenView(BaseModel):
    id: str
    name: str | None = None
    auxiliary: bool
    state: Literal["outstanding", "used", "expired", "revoked"]
    expires_at: datetime
    server_id: int | None = None


class Event(BaseModel):
    seq: int
    at: datetime
    kind: str
    group_id: UUID | None = None
    server_id: int | None = None
    epoch: int | None = None
    status: str | None = None
    message: str


class Events(BaseModel):
    """`first` and `last` are the numbers of the oldest and the newest event that the coordinator still has."""

    events: list[Event]
    next: int
    first: int | None = None
    last: int | None = None
