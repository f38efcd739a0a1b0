"""The cost profile that the figures use: the one of `make profile` on this machine, else the one in the repository.

`quorate-planner demand` computes the cost of an SLA by it, in the numbers that admission reserves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from quorate_local.options import REPOSITORY
from quorate_papers import tool

LOCAL = REPOSITORY / "loadtest" / "profiles" / "local.json"
MEASURED = REPOSITORY / "loadtest" / "profiles" / "measured-2026-11-22-1041.json"
DEFAULT = REPOSITORY / "services" / "crates" / "placement" / "profiles" / "default.json"
UNITS = (1e9, 1.0, 1e3)  # tokens of a core-second, a byte, an operation
ASKED_AT_ONCE = 5_000

Sla: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Demand:
    """The planner's answer for one SLA; vectors of each replica, head first."""

    shard_peak_per_s: int
    reserved_tokens_per_s: list[list[int]]
    request_milli: list[list[int]]


@dataclass(frozen=True)
class Profile:
    """`read`: the file's content, which `quorate-planner` or a coordinator found to be valid. `instead_of`: the reason
    for which this machine's own is not used, if there is one. `known`: answers of the planner."""

    path: Path
    read: dict[str, Any]
    instead_of: str | None = None
    known: dict[tuple[Any, ...], Demand] = field(default_factory=dict, compare=False, repr=False)

    @property
    def version(self) -> str:
        return str(self.read["version"])

    @property
    def safety_factor(self) -> float:
        return float(self.read["safety_factor"])

    def about(self) -> dict[str, Any]:
        """For a file that is kept: which one, and where it was measured."""
        return {key: self.read.get(key) for key in ("version", "provisional", "machine", "servers_version")}

    def operations(self, sla: Sla) -> int:
        """Storage operations for one append at each replica."""
        return self.demand({**sla, "rate_per_s": 1}).request_milli[0][2] // 1_000_000

    def demands(self, sla: Sla) -> list[list[float]]:
        """Demand of each replica, head first: cores, bytes/s, operations/s."""
        return [[amount / unit for amount, unit in zip(one, UNITS, strict=True)] for one in self.amounts(sla)]

    def amounts(self, sla: Sla) -> list[list[int]]:
        """The same as the coordinator reserves it: ns of CPU, bytes, thousandths of operations, each second."""
        return self.demand(sla).reserved_tokens_per_s

    def shard_peak_per_s(self, sla: Sla) -> int:
        """The largest rate of a group that one shard can carry."""
        return self.demand({**sla, "rate_per_s": 1}).shard_peak_per_s

    def demand(self, sla: Sla) -> Demand:
        if _key(sla) not in self.known:
            self.ask([sla])
        return self.known[_key(sla)]

    def ask(self, slas: Iterable[Sla]) -> None:
        """Learns the demands of many SLAs from few processes."""
        missing = [sla for sla in slas if _key(sla) not in self.known]
        for first in range(0, len(missing), ASKED_AT_ONCE):
            part = missing[first : first + ASKED_AT_ONCE]
            answer = tool.run(["demand"], None, {"profile": self.read, "slas": part})
            self.known.update(
                {_key(sla): _demand(answered) for sla, answered in zip(part, answer["slas"], strict=True)}
            )


def _key(sla: Sla) -> tuple[Any, ...]:
    return tuple(sla[name] for name in ("durability", "replication_degree", "request_size_bytes", "rate_per_s"))


def _demand(answered: dict[str, Any]) -> Demand:
    replicas = answered["replicas"]
    return Demand(
        shard_peak_per_s=answered["shard_peak_per_s"],
        reserved_tokens_per_s=[replica["reserved_tokens_per_s"] for replica in replicas],
        request_milli=[replica["request_milli"] for replica in replicas],
    )


def read(path: Path, instead_of: str | None = None) -> Profile:
    return Profile(path, json.loads(path.read_text()), instead_of)


@cache
def chosen() -> Profile:
    """For the figures that are computed; the same for all of them."""
    if not LOCAL.exists():
        return read(MEASURED)
    problem = tool.problem(LOCAL)
    return read(LOCAL) if problem is None else read(MEASURED, problem)


def described(about: dict[str, Any], instead_of: str | None = None) -> str:
    """For people: the profile, and the machine that it was measured on. `about`: as `Profile.about` gives it."""
    said = f"`{about['version']}`, "
    if instead_of:
        said += f"since this machine's own cannot be used ({instead_of}), "
    if about["provisional"]:
        return said + "**an estimate**"
    machine = about["machine"]
    if machine is None:
        return said + "measured on a machine that it does not name"
    return said + f"measured on {machine['cores']} × {machine['cpu']}, servers {about['servers_version']}"
