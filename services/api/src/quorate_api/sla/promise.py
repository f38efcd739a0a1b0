"""The promise of a group's SLA, by the terms of `docs/reference/sla.md`. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, Self

from sqlalchemy import Row

from quorate_api.agreed.periods import periods
from quorate_api.promises.latency import latency_p99_us
from quorate_api.sla.targets import AVAILABILITIES, KEPT, LATENCY, THROUGHPUT, Clause
from quorate_api.telemetry.windows import WINDOW_S

Sla = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Promise:
    """`latency_us`: each bound with the time until which it held, oldest first; the last one holds on."""

    availability: Clause
    latency_us: tuple[tuple[float, int], ...]

    @classmethod
    def of(cls, availability_ppm: int, slas: Iterable[tuple[float, Sla]]) -> Self:
        """`slas`: each with the time until which it held, oldest first; infinity for the present one."""
        bounds = [(until_s, latency_p99_us(sla)) for until_s, sla in slas]
        assert bounds, "a group has an SLA"
        assert bounds[-1][0] == inf, "the present SLA holds on"
        return cls(AVAILABILITIES[availability_ppm], tuple(bounds))

    @classmethod
    def of_group(cls, group: Row[Any], former: Iterable[Row[Any]]) -> Self:
        """`former`: the group's rows of `former_slas`."""
        found = periods(group, former)
        return cls.of(
            group.availability_ppm,
            [(inf if period.end is None else period.end.timestamp(), period.sla) for period in found],
        )

    @property
    def clauses(self) -> tuple[Clause, ...]:
        return (self.availability, THROUGHPUT, LATENCY, *KEPT)

    @property
    def latency_us_now(self) -> int:
        return self.latency_us[-1][1]

    def latency_us_at(self, start_s: int) -> int:
        """The bound for the minute that begins then: the largest of those that held in it."""
        begins = (-inf, *(until_s for until_s, _ in self.latency_us))
        return max(
            bound
            for (begin_s, end_s), (_, bound) in zip(pairwise(begins), self.latency_us, strict=True)
            if begin_s < start_s + WINDOW_S and start_s < end_s
        )
