"""Requests and answers of `/v1/prober`."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from quorate_api import limits
from quorate_api.http.schemas import Input, Output
from quorate_api.telemetry.windows import WINDOW_S

ServerId = Annotated[int, Field(ge=1, le=2**32 - 1)]
Ms = Annotated[int, Field(ge=0, le=WINDOW_S * 1_000)]
Time = Annotated[list[Ms], Field(min_length=2, max_length=2)]


class Target(Output):
    server_id: int
    address: str = Field(description="host:port, for clients.")


class Targets(Output):
    servers: list[Target]
    ca_pem: str = Field(description="The fleet's certificate authority.")


class Failed(Input):
    server_id: ServerId
    times: Annotated[list[Time], Field(min_length=1, max_length=limits.PROBED_FAILURES_MAX)] = Field(
        description="Times without an answer, [from, to) in ms since the minute's begin. In order, and apart."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        at_ms = 0
        for from_ms, to_ms in self.times:
            if not at_ms <= from_ms < to_ms:
                raise ValueError("times must be in order, end after they begin, and not overlap")
            at_ms = to_ms
        return self


class LookedMinute(Input):
    minute_s: Annotated[int, Field(ge=0, le=1 << 40, multiple_of=WINDOW_S, description="Its begin, Unix time.")]
    watched: Annotated[list[ServerId], Field(max_length=limits.PROBED_SERVERS_MAX)] = Field(
        description="Servers that were watched in all of the minute."
    )
    failed: Annotated[list[Failed], Field(max_length=limits.PROBED_SERVERS_MAX)] = Field(
        description="Watched servers that did not answer all the time, each once."
    )

    @model_validator(mode="after")
    def _of_watched(self) -> Self:
        failed = [each.server_id for each in self.failed]
        if not set(failed) <= set(self.watched):
            raise ValueError("a server that was not watched cannot have failed")
        if len(set(failed)) < len(failed):
            raise ValueError("a server is told twice")
        return self


class Looked(Input):
    """A prober's report. A minute that it told before stays as it was told."""

    prober: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9a-zA-Z._-]+$", description="Its name.")]
    minutes: Annotated[list[LookedMinute], Field(min_length=1, max_length=limits.PROBED_MINUTES_MAX)]


class Taken(Output):
    minutes: int = Field(description="How many of them count. Those of days that are settled do not.")
