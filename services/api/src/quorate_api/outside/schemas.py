"""Requests and answers of `/v1/prober`."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from quorate_api import limits
from quorate_api.http.schemas import Input, Output
from quorate_api.telemetry.windows import WINDOW_S

ServerId = Annotated[int, Field(ge=1, le=2**32 - 1)]
WINDOW_MS = WINDOW_S * 1_000


class Target(Output):
    server_id: int
    address: str = Field(description="host:port, for clients.")


class Targets(Output):
    servers: list[Target]
    ca_pem: str = Field(description="The fleet's certificate authority.")


class Failed(Input):
    """A time without an answer: [from, to)."""

    server_id: ServerId
    from_ms: Annotated[int, Field(ge=0, le=1 << 53)]
    to_ms: Annotated[int, Field(ge=0, le=1 << 53)]


class LookedMinute(Input):
    minute_s: Annotated[int, Field(ge=0, le=1 << 40, multiple_of=WINDOW_S, description="Its begin, Unix time.")]
    watched: Annotated[list[ServerId], Field(max_length=limits.PROBED_SERVERS_MAX)] = Field(
        description="Servers that were watched in all of the minute."
    )
    failed: Annotated[list[Failed], Field(max_length=limits.PROBED_FAILURES_MAX)] = Field(
        description="Times in which a watched server did not answer. Those of one server do not overlap."
    )

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        watched, start_ms = set(self.watched), self.minute_s * 1_000
        until_ms: dict[int, int] = {}
        for each in self.failed:
            if each.server_id not in watched:
                raise ValueError("a server that was not watched cannot have failed")
            if not start_ms <= each.from_ms < each.to_ms <= start_ms + WINDOW_MS:
                raise ValueError("times of failures must lie within the minute, and end after they begin")
            if each.from_ms < until_ms.get(each.server_id, 0):
                raise ValueError("times of one server must be in order, and not overlap")
            until_ms[each.server_id] = each.to_ms
        return self


class Looked(Input):
    """What a prober saw. A minute that it told before stays as it was told."""

    prober: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9a-zA-Z._-]+$", description="Its name.")]
    minutes: Annotated[list[LookedMinute], Field(min_length=1, max_length=limits.PROBED_MINUTES_MAX)]


class Taken(Output):
    minutes: int = Field(description="How many of them count. Those of days that are settled do not.")
