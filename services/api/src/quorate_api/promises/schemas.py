"""Numbers that an SLA promises, as customers see them before they buy and after."""

from pydantic import Field

from quorate_api.coordinator.schemas import ObservedSla
from quorate_api.http.schemas import Output
from quorate_api.promises.availability import PPM
from quorate_api.promises.latency import latency_p99_us


class SlaPromise(Output):
    availability: float = Field(description="Share of the time; more for replicas in three failure domains or more.")
    latency_p99_us: int = Field(description="Bound on p99 of commit latency in a minute, by class, durability, size.")

    @classmethod
    def of(cls, sla: ObservedSla, availability_ppm: int) -> "SlaPromise":
        return cls(availability=availability_ppm / PPM, latency_p99_us=latency_p99_us(sla.model_dump(mode="json")))
