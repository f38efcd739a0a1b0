"""What a customer asks for, its price, and the answer."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, ValidationInfo, field_validator

from quorate_api import limits
from quorate_api.coordinator.schemas import Durability, ObservedSla, Refusal, ReplicaDemand, ResourceDemand
from quorate_api.http.schemas import Input, Output


class SlaInput(Input):
    durability: Literal["persistent", "in_memory"] = Field(
        description="When an entry is acknowledged: on stable storage of every replica, or in its memory."
    )
    replication_degree: Annotated[int, Field(ge=1, le=limits.REPLICATION_DEGREE_MAX)] = Field(
        description="Copies of the log, each on another server."
    )
    min_replicas: Annotated[int, Field(ge=1, le=limits.REPLICATION_DEGREE_MAX)] | None = Field(
        None, description="Appends pause with fewer live replicas; null: a majority."
    )
    request_size_bytes: Annotated[int, Field(ge=1, le=limits.REQUEST_SIZE_BYTES_MAX)] = Field(
        description="Size of a typical entry."
    )
    rate_per_s: Annotated[int, Field(ge=1, le=limits.RATE_PER_S_MAX)] = Field(
        description="Reserved appends of request_size_bytes, each second."
    )
    region: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")] = "local"
    retention_bytes: Annotated[int, Field(ge=limits.RETENTION_BYTES_MIN, le=limits.RETENTION_BYTES_MAX)] = Field(
        limits.RETENTION_BYTES_DEFAULT, description="The log keeps its newest so many bytes."
    )
    retention_age_s: Annotated[int, Field(ge=limits.RETENTION_AGE_S_MIN, le=limits.RETENTION_AGE_S_MAX)] | None = Field(
        None, description="Entries older than so many seconds are discarded as well; null: none for their age."
    )

    @field_validator("min_replicas")
    @classmethod
    def _min_replicas_fit(cls, value: int | None, others: ValidationInfo) -> int | None:
        degree = others.data.get("replication_degree")
        if value is not None and degree is not None and value > degree:
            raise ValueError("min_replicas must be at most replication_degree")
        return value

    def sla(self) -> ObservedSla:
        fields = self.model_dump(include=set(ObservedSla.model_fields))
        return ObservedSla(**{**fields, "durability": Durability(self.durability)})


class QuoteRequest(SlaInput):
    """The SLA."""

    replaces_group_id: Annotated[UUID, Field(strict=False)] | None = Field(
        None, description="A group of yours whose own reservation does not count against the SLA."
    )


class PriceLine(Output):
    resource: str = Field(description="cpu, network or storage_io")
    quantity: float
    unit: str
    unit_price_micros: int = Field(description="For an hour of one unit.")
    hourly_micros: int = Field(description="Rounded up.")


class UsagePriceLine(Output):
    kind: Literal["appends", "reads", "storage"]
    label: str
    per: str = Field(description="What unit_price_micros buys, as in `million entries`.")
    unit: str
    price_quantity: int = Field(description="How many units unit_price_micros buys.")
    unit_price_micros: int


class Price(Output):
    """Of the reservation; usage comes on top."""

    hourly_micros: int
    monthly_micros: int = Field(description="Of 730 hours. Billed by the second.")
    currency: str
    lines: list[PriceLine]
    usage: list[UsagePriceLine]


class Demand(Output):
    """What the SLA takes on the fleet."""

    replicas: list[ReplicaDemand]
    total: ResourceDemand
    dominant_resource: str | None


class QuoteAnswer(Output):
    admissible: bool
    price: Price
    demand: Demand
    refusal: Refusal | None = Field(description="Why not, and an SLA that would fit; null if admissible.")
