"""An SLA as a customer asks for it."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from quorate_api import limits
from quorate_api.coordinator.schemas import Durability, LatencyClass, ObservedSla
from quorate_api.http.schemas import Input

Partitions = Annotated[int, Field(ge=1, le=limits.PARTITIONS_MAX)]


class SlaInput(Input):
    durability: Literal["persistent", "in_memory"] = Field(
        description="Place of an entry on every replica before its acknowledgement: stable storage, or memory."
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
    read_rate_per_s: Annotated[int, Field(ge=0, le=limits.RATE_PER_S_MAX)] = Field(
        0,
        description="Reserved reads: entries of request_size_bytes, each second, from all replicas together. "
        "0: reads have what is spare.",
    )
    region: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")] = "local"
    retention_bytes: Annotated[int, Field(ge=limits.RETENTION_BYTES_MIN, le=limits.RETENTION_BYTES_MAX)] = Field(
        limits.RETENTION_BYTES_DEFAULT, description="How many of its newest bytes the log keeps."
    )
    retention_age_s: Annotated[int, Field(ge=limits.RETENTION_AGE_S_MIN, le=limits.RETENTION_AGE_S_MAX)] | None = Field(
        None, description="Age at which entries are discarded as well; null: no limit on age."
    )
    latency: LatencyClass = Field(
        "standard",
        description="The bound on commit latency at p99, by the terms of the SLA. `low` takes more capacity.",
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
