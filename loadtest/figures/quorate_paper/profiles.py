"""The cost profile that the figures use: what `make profile` measured on this machine, else the estimate shipped.

What a profile says of an SLA is that of `services/crates/placement/src/profile.rs`, formats 1 to 3, in the same whole
numbers: the exact solver needs demand vectors, and `quorate-alloc` prints none. That both say the same is tested.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

from quorate_local.options import REPOSITORY
from quorate_paper import tool

LOCAL = REPOSITORY / "loadtest" / "profiles" / "local.json"
DEFAULT = REPOSITORY / "services" / "crates" / "placement" / "profiles" / "default.json"
LONE_APPENDS_PER_S = 1_000  # that an SLA holds in batches of their own (`services/crates/types/src/limits.rs`)
COPIES = {"head": 2, "sole": 1, "follower": 2, "tail": 1}  # of the payload, over a role's network interface
ACKS = {"head": 2, "sole": 1, "follower": 0, "tail": 1}


@dataclass(frozen=True)
class Profile:
    """`read`: the file's content, which `quorate-alloc` or a coordinator found to be valid. `instead_of`: why this
    machine's own is not used, where it is there."""

    path: Path
    read: dict[str, Any]
    instead_of: str | None = None

    @property
    def version(self) -> str:
        return str(self.read["version"])

    @property
    def safety_factor(self) -> float:
        return float(self.read["safety_factor"])

    def about(self) -> dict[str, Any]:
        """For a file that is kept: which one, and where it was measured."""
        return {key: self.read.get(key) for key in ("version", "provisional", "machine", "servers_version")}

    def operations(self, sla: dict[str, Any]) -> int:
        """Of storage, for one append at each replica."""
        storage = self.read["storage"]
        is_stored = sla["durability"] == "persistent"
        return int(-(-sla["request_size_bytes"] // storage["io_bytes"]) * storage["writes"]) if is_stored else 0

    def demands(self, sla: dict[str, Any]) -> list[list[float]]:
        """Of each replica, head first: cores, bytes/s, operations/s."""
        units = (1e9, 1.0, 1e3)
        return [[amount / unit for amount, unit in zip(one, units, strict=True)] for one in self.amounts(sla)]

    def amounts(self, sla: dict[str, Any]) -> list[list[int]]:
        """The same as the coordinator reserves it: ns of CPU, bytes, thousandths of operations, each second. In full
        batches, but for those appends that may come alone."""
        rate = sla["rate_per_s"]
        alone = min(rate, LONE_APPENDS_PER_S)
        made = []
        for role in _roles(sla["replication_degree"]):
            costs = zip(self._append_milli(sla, role), self._alone_milli(sla["durability"], role), strict=True)
            made.append([-(-(full * rate + more * alone) // 1_000) for full, more in costs])
        return made

    def shard_peak_per_s(self, sla: dict[str, Any]) -> int:
        """The largest rate that one shard can carry of a group, some of which comes alone."""
        shard_ps = self.read["shard_cores"] * self.safety_factor * 1e12
        least = inf
        for role in _roles(sla["replication_degree"]):
            append_ps = _milli_at(self._curve(sla["durability"], role), sla["request_size_bytes"], "busiest_ns")
            alone_ps = self._alone_milli(sla["durability"], role)[0]
            all_alone = shard_ps / (append_ps + alone_ps)
            some_alone = (shard_ps - alone_ps * LONE_APPENDS_PER_S) / append_ps
            least = min(least, all_alone if all_alone < LONE_APPENDS_PER_S else some_alone)
        return int(least)

    def _append_milli(self, sla: dict[str, Any], role: str) -> list[int]:
        """Of one append in full batches, in thousandths: ps, 1/1000 bytes, 1/1 000 000 operations."""
        network, size = self.read["network"], sla["request_size_bytes"]
        header, ack = (
            network[key] * 1_000 // network["entries_per_batch"] for key in ("batch_header_bytes", "ack_bytes")
        )
        cpu_ps = _milli_at(self._curve(sla["durability"], role), size, "cpu_ns")
        copies = COPIES[role] * (size * 1_000 + header)
        return [cpu_ps, copies + ACKS[role] * ack, self.operations(sla) * 1_000_000]

    def _alone_milli(self, durability: str, role: str) -> list[int]:
        """What an append costs more that comes in a batch of its own. Before format 3 nobody knew."""
        batch_ns = self.read["cpu"][durability].get("batch_ns")
        if batch_ns is None:
            return [0, 0, 0]
        network = self.read["network"]
        entries = network["entries_per_batch"]
        beside = COPIES[role] * network["batch_header_bytes"] + ACKS[role] * network["ack_bytes"]
        lacking = entries - 1
        return [batch_ns[_curve_of(role)] * 1_000 // entries * lacking, beside * 1_000 // entries * lacking, 0]

    def _curve(self, durability: str, role: str) -> list[dict[str, int]]:
        points: list[dict[str, int]] = self.read["cpu"][durability][_curve_of(role)]
        return points


def read(path: Path, instead_of: str | None = None) -> Profile:
    return Profile(path, json.loads(path.read_text()), instead_of)


@cache
def chosen() -> Profile:
    """For the figures that are computed; the same for all of them."""
    if not LOCAL.exists():
        return read(DEFAULT)
    problem = tool.problem(LOCAL)
    return read(LOCAL) if problem is None else read(DEFAULT, problem)


def told(about: dict[str, Any], instead_of: str | None = None) -> str:
    """For people: which one, and whether somebody measured it, and where. `about`: as `Profile.about` gives it."""
    said = f"`{about['version']}`, "
    if about["provisional"]:
        said += "**an estimate**: "
        return said + (
            f"this machine's own cannot be used ({instead_of})" if instead_of else "nothing measured was there"
        )
    machine = about["machine"]
    if machine is None:
        return said + "measured on a machine that it does not name"
    return said + f"measured on {machine['cores']} × {machine['cpu']}, servers {about['servers_version']}"


def _roles(degree: int) -> list[str]:
    return ["sole"] if degree == 1 else ["head", *["follower"] * (degree - 2), "tail"]


def _curve_of(role: str) -> str:
    return "head" if role == "sole" else role


def _milli_at(points: list[dict[str, int]], size: int, key: str) -> int:
    """Thousandths of what points say of an append of this size: interpolated; the first one's below, the last segment
    goes on."""

    def value(point: dict[str, int]) -> int:
        return point.get(key, point["cpu_ns"])

    if size <= points[0]["size_bytes"]:
        return value(points[0]) * 1_000
    low, high = next((pair for pair in pairwise(points) if size <= pair[1]["size_bytes"]), (points[-2], points[-1]))
    rise = (value(high) - value(low)) * 1_000 * (size - low["size_bytes"])
    return value(low) * 1_000 + rise // (high["size_bytes"] - low["size_bytes"])
