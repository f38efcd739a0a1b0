"""The fleet as its operators see it."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from quorate_api import limits
from quorate_api.coordinator.schemas import Amounts
from quorate_api.http.schemas import Input, Output, Page


class Resources(Output):
    """`free` is what admission may still promise: nominal × safety factor less what is allocated, at least 0."""

    nominal: Amounts
    promisable: Amounts
    allocated: Amounts
    free: Amounts


class Drain(Output):
    state: Literal["draining", "drained"]
    since: datetime
    drained_at: datetime | None
    moving: int = Field(description="Replicas whose replacements learn.")
    waiting: int = Field(description="Replicas that wait for their turn, or for room.")
    scarce_resource: str | None = Field(description="What those that find no server lack.")
    message: str = Field(description="How far it is, and what it waits for, for people.")


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
    slow: str | None = Field(description="Why it counts as slow, while it does.")
    machine: str | None = Field(description="What it runs on, as it says: cores and processor.")
    foreign: str | None = Field(
        description="How the cost profile in use is not of its machine or version, while it is not: its promises rest "
        "on what other servers can do. `--foreign-profile refuse` keeps replicas from it."
    )
    takes_replicas: bool = Field(
        description="Whether replicas may be placed on it, if there is room; on an auxiliary server replacements only."
    )
    draining: bool
    drain: Drain | None
    registered_at: datetime
    failed_at: datetime | None


class Servers(Output):
    items: list[Server]


class Capacity(Resources):
    """Of the servers that are alive and neither auxiliary nor draining."""

    servers_alive: int
    safety_factor: float
    profile_version: str
    profile_provisional: bool = Field(description="Whether the costs were not measured on this fleet.")


class Lent(Output):
    """What a group may use above its SLA now, and what of its reservation others may."""

    group_id: UUID
    epoch: int
    server_id: int = Field(description="The server of the group's head, which says so.")
    server_name: str | None
    borrowed_per_s: int = Field(description="Requests of the declared size each second, above the SLA.")
    borrowed_since: datetime | None = Field(description="Since when something was lent to it without a break.")
    bounded_by: Literal["cpu", "network", "storage_io"] | None = Field(
        description="Of what there was no more; null: it has all that it wants, or borrows nothing."
    )
    bounded_by_server_id: int | None = Field(description="The replica's server that had no more.")
    lent_per_s: int = Field(description="Of its reservation, what others may use, as it does not.")
    observed_at: datetime = Field(description="When its head said so.")


class Lending(Page[Lent]):
    state: Literal["complete", "partial", "unknown"] = Field(
        description="`partial`: servers told more than was read. `unknown`: Redis, where they tell it, is away."
    )


class NewJoinToken(Input):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")] | None = Field(
        None, description="The only name that a server may join under with it; null: any."
    )
    ttl_s: Annotated[int, Field(ge=1, le=limits.JOIN_TOKEN_TTL_S_MAX)] = limits.JOIN_TOKEN_TTL_S_DEFAULT
    auxiliary: bool = Field(False, description="The server then takes replacements of failed replicas only.")


class JoinToken(Output):
    id: str = Field(description="By which it is found again, and revoked. No secret.")
    token: str = Field(description="One server joins with it, once. It is shown now and never again.")
    name: str | None
    auxiliary: bool
    expires_at: datetime


class KnownJoinToken(Output):
    """A join token as it is known after it was made: without the token."""

    id: str
    name: str | None
    auxiliary: bool
    state: Literal["outstanding", "used", "expired", "revoked"]
    expires_at: datetime
    server_id: int | None = Field(description="Who joined with it.")


class JoinTokens(Output):
    items: list[KnownJoinToken]
