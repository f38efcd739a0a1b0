"""Liveness, and the state of each dependency."""

from typing import Literal

from pydantic import Field

from quorate_api.http.schemas import Output


class Health(Output):
    status: Literal["ok"]


class Dependency(Output):
    name: Literal["postgresql", "redis", "coordinator"]
    state: Literal["ok", "missing"]
    detail: str = Field(description="The fault and its consequence, for people.")


class Readiness(Output):
    status: Literal["ok", "degraded", "unavailable"] = Field(
        description="degraded: calls that need a missing dependency fail; the others work."
    )
    dependencies: list[Dependency] | None = Field(None, description="For operators alone; null for others.")
