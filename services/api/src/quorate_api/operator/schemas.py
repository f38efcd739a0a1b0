"""The fleet as its operators see it."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from quorate_api import limits
from quorate_api.coordinator.schemas import Amounts, Rates
from quorate_api.groups.schemas import PlacedRelocation
from quorate_api.guarantees.schemas import LocalPolicy
from quorate_api.http.schemas import Input, Output, Page


class Resources(Output):
    """`free`: what admission may still promise, at least 0: nominal × safety factor less allocated. Memory and disk
    have no safety factor."""

    nominal: Amounts
    promisable: Amounts
    allocated: Amounts
    free: Amounts


class Drain(Output):
    state: Literal["draining", "drained"]
    since: datetime
    drained_at: datetime | None
    moving: int = Field(description="Replicas whose replacements are copying the log.")
    waiting: int = Field(description="Replicas that wait for their turn, or for free capacity.")
    scarce_resource: str | None = Field(description="The resource that waiting replicas lack.")
    message: str = Field(description="Progress, and what the drain waits for, for people.")


class CapacityEstimate(Output):
    capacity: float = Field(description="In the unit of `resources`: cores, or storage operations a second.")
    phase: str = Field(description="Phase of the search: `increasing`, `reverted`, `waiting` or `stable`.")
    is_measured: bool = Field(description="Whether a saturated resource has shown it; otherwise it is assumed.")
    lasting_permille: int = Field(
        description="Part of the nominal capacity that admission goes by, in thousandths: the highest estimate of the "
        "last half minute, and 1000 where nothing lower was measured."
    )


class Estimated(Output):
    """The capacity that a server really has, by its own measurements."""

    cpu: CapacityEstimate | None
    storage_io: CapacityEstimate | None


class Server(Output):
    server_id: int
    name: str
    address: str
    region: str
    failure_domain: str | None
    auxiliary: bool = Field(description="Takes replacements of failed replicas only.")
    alive: bool
    storage_fault: str | None
    version: str
    resources: Resources
    replicas: int
    slow: str | None = Field(description="The reason why it counts as slow; null while it does not.")
    machine: str | None = Field(description="The machine, as the server reports it: cores and processor.")
    foreign: str | None = Field(
        description="How the cost profile in use mismatches its machine or version; null while it matches. Promises "
        "on a mismatched server rest on other servers' costs. `--foreign-profile refuse` keeps replicas from it."
    )
    takes_replicas: bool = Field(
        description="Whether replicas may be placed on it; on an auxiliary server, replacements only."
    )
    draining: bool
    drain: Drain | None
    estimated: Estimated | None = Field(
        description="Null while the server is away, and where it estimates nothing (`--estimate-capacity off`)."
    )
    registered_at: datetime
    failed_at: datetime | None


class Servers(Output):
    items: list[Server]


class Capacity(Resources):
    """Sums over the servers that are alive and neither auxiliary nor draining."""

    servers_alive: int
    safety_factor: float
    profile_version: str
    profile_provisional: bool = Field(description="Whether the costs were measured elsewhere than on this fleet.")


class Sharing(Output):
    """The last round in which the leading coordinator shared out capacity that nobody uses, among the groups that want
    more than their SLAs."""

    policy: str = Field(description="Policy of the shares: `drf`, `hierarchical_drf` or `first_fit`.")
    rounds: int = Field(description="Rounds since this coordinator was started; 0 while servers report nothing.")
    servers: int = Field(description="Servers that had reported.")
    groups_wanting: int = Field(description="Groups that wanted more than their SLAs.")
    groups_satisfied: int = Field(description="Groups that got all that they wanted.")
    took_us: int = Field(description="Time that the round took, in microseconds.")
    ended_at: datetime | None = Field(description="The round's end; null before the first one.")


class Pressure(Output):
    """A server that lacks room. If that lasts for three rounds, a replica moves away."""

    server_id: int
    cause: str = Field(
        description="`demand`: a partition wants more than the server has free. `capacity`: the server can do less "
        "than it has promised."
    )
    partition: UUID | None = Field(description="The partition that wants more.")
    lacking: Rates


class RateChange(Output):
    """The rate of a partitioned group, divided anew among its partitions by what they want."""

    at: datetime
    group_id: UUID
    is_swapped: bool = Field(
        description="Whether rates of another group changed with it, since their servers had nothing free."
    )
    rates: list[int] = Field(description="Requests of the declared size each second, by partition.")


class MovingGroup(Output):
    group_id: UUID
    project_id: UUID
    relocation: PlacedRelocation


class Balance(Output):
    """Rates and replicas that follow the load, with their reasons."""

    rounds: int = Field(description="Rounds since the leading coordinator was started; one every three seconds.")
    ended_at: datetime | None = Field(description="The last round's end.")
    partitions: int = Field(description="Partitions whose heads had said what they want.")
    pressures: list[Pressure] = Field(description="Servers that lacked room in the last round.")
    rate_changes: list[RateChange] = Field(description="The last hundred since that start, newest first.")
    moves: list[MovingGroup] = Field(description="Groups whose replicas move, or wait for room.")


class Move(Input):
    from_server: Annotated[int, Field(ge=1, le=2**32 - 1)]
    to_server: Annotated[int, Field(ge=1, le=2**32 - 1)] | None = Field(
        None, description="null: the server that placement chooses."
    )


class Guaranteed(Output):
    """A project's guarantee and its use."""

    project_id: UUID
    shared_tokens_per_s: int
    max_tokens_per_s: int | None
    policy: LocalPolicy
    since: datetime | None
    groups: int
    own_tokens_per_s: int = Field(description="The groups' own rates.")
    wanted_tokens_per_s: int = Field(
        description="Tokens that groups want beside their own rates, by their heads' reports."
    )
    granted_tokens_per_s: int = Field(description="Shared tokens that they have now.")


class Guarantees(Output):
    items: list[Guaranteed]


class Lent(Output):
    """A group's current grant above its SLA, and the part of its reservation that other groups may use."""

    group_id: UUID
    epoch: int
    server_id: int = Field(description="The server of the group's head, which reported this.")
    server_name: str | None
    borrowed_per_s: int = Field(description="The grant: requests of the declared size each second, above the SLA.")
    borrowed_since: datetime | None = Field(description="Start of the current uninterrupted grant.")
    bounded_by: Literal["cpu", "network", "storage_io"] | None = Field(
        description="The resource that bounds the grant; null: it has all that it wants, or no grant."
    )
    bounded_by_server_id: int | None = Field(description="The replica's server that bounds the grant.")
    lent_per_s: int = Field(description="The unused part of its reservation, which other groups may use.")
    observed_at: datetime = Field(description="Time of the head's report.")


class Lending(Page[Lent]):
    state: Literal["complete", "partial", "unknown"] = Field(
        description="`partial`: servers reported more than was read. `unknown`: Redis, which holds reports, is away."
    )


class NewJoinToken(Input):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")] | None = Field(
        None, description="The only name under which a server may join with it; null: any."
    )
    ttl_s: Annotated[int, Field(ge=1, le=limits.JOIN_TOKEN_TTL_S_MAX)] = limits.JOIN_TOKEN_TTL_S_DEFAULT
    auxiliary: bool = Field(False, description="The server then takes replacements of failed replicas only.")


class JoinToken(Output):
    id: str = Field(description="Identifies the token in lists and for revoking. It is not secret.")
    token: str = Field(description="One server joins with it, once. It is shown only now.")
    name: str | None
    auxiliary: bool
    expires_at: datetime


class KnownJoinToken(Output):
    """A join token after its creation, without the token itself."""

    id: str
    name: str | None
    auxiliary: bool
    state: Literal["outstanding", "used", "expired", "revoked"]
    expires_at: datetime
    server_id: int | None = Field(description="The server that joined with it.")


class JoinTokens(Output):
    items: list[KnownJoinToken]


class HostedReplica(Output):
    """A replica on a server, with whose it is."""

    group_id: UUID = Field(description="The group's id, or the partition's own.")
    name: str
    organization_id: UUID
    organization_name: str
    status: str
    role: str
    is_learner: bool = Field(description="It catches up, and counts for no commit yet.")
    rate_per_s: int
    durability: str


class PriceOfResource(Output):
    resource: str
    unit: str
    hourly_micros: int = Field(description="For one unit, held for an hour, in millionths of the currency.")


class PriceOfUse(Output):
    kind: str
    label: str
    per: str = Field(description="The quantity that costs `price_micros`.")
    price_micros: int


class PriceOfCommitment(Output):
    months: int
    percent_off: int


class PriceListed(Output):
    valid_from: datetime
    is_held: bool = Field(description="Whether it holds now.")
    resources: list[PriceOfResource]
    usage: list[PriceOfUse]
    guarantee_hourly_micros: int = Field(description="For a million shared tokens a second.")
    commitments: list[PriceOfCommitment]


class PriceLists(Output):
    currency: str
    items: list[PriceListed] = Field(description="Newest first.")
