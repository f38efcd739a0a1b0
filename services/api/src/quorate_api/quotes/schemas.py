"""The request for a quote, and its answer."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from quorate_api.admission.schemas import Partitions, SlaInput
from quorate_api.coordinator.schemas import Refusal, ReplicaDemand, ResourceDemand
from quorate_api.http.schemas import Output
from quorate_api.pricing.schemas import Price
from quorate_api.promises.schemas import SlaPromise


class QuoteRequest(SlaInput):
    """The SLA."""

    replaces_group_id: Annotated[UUID, Field(strict=False)] | None = Field(
        None, description="A group of yours whose own reservation does not count against the SLA."
    )

    partitions: Partitions | None = Field(
        None, description="Among which keys are divided; null: as many as the replaced group has, or one."
    )

    project_id: Annotated[UUID, Field(strict=False)] | None = Field(
        None, description="A project of yours, for a group of it: its guarantee counts."
    )


class Demand(Output):
    """Resources that the SLA takes on the fleet."""

    replicas: list[ReplicaDemand] = Field(description="Replicas of the group, or of its first partition.")
    total: ResourceDemand
    dominant_resource: str | None


class QuoteAnswer(Output):
    admissible: bool
    price: Price
    promise: SlaPromise = Field(description="Promised numbers; availability as the fleet would place the group now.")
    demand: Demand
    moves: int = Field(description="Replicas that move to other servers before the SLA of a resize begins.")
    refusal: Refusal | None = Field(description="The reason, and an SLA that would fit; null if admissible.")
