"""Is it alive, and what is missing."""

from typing import Literal

from pydantic import Field

from quorate_api.http.schemas import Output


class Health(Output):
    status: Literal["ok"]


class Dependency(Output):
    name: Literal["postgresql", "redis", "coordinator"]
    state: Literal["ok", "missing"]
    detail: str = Field(description="What is missing and what it means, for people.")


class Readiness(Output):
    status: Literal["ok", "degraded", "unavailable"] = Field(
        description="degraded: what needs the missing part fails, the rest works."
    )
    dependencies: list[Dependency]
