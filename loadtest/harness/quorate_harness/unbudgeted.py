"""A stack whose groups have budgets beyond what can be reached: isolation is on, and never in the way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.display import Display
from quorate_local.layout import write_text
from quorate_local.options import REPOSITORY, ServerResources

SERVERS = 3
BEYOND_REACH = ServerResources(cpu_cores=64.0, network_bytes_per_s=10**12, storage_io_per_s=10**9)
# One organization may reserve less in all than the machine can do with entries of this size …
RATE_PER_S = 4_000_000
# … so that requests are reserved larger than they come, and the budget is one of bytes that is never reached.
REQUEST_BYTES = 4_096
RETENTION_BYTES = 64 << 20  # small enough to be reached while warming up: then memory and segments are used again
RETENTION_BYTES_MIN = 1 << 20  # the API's minimum
DURABILITY = {"mem": "in_memory", "sync": "persistent"}


def unbudgeted_stack(
    folder: Path,
    display: Display,
    is_plaintext: bool,
    server_env: Mapping[str, str] | None = None,
    bin_dir: Path | None = None,
) -> Stack:
    """Not yet started; its state is in `folder`. Without TLS from clients to servers and between them, or with."""
    options = StackOptions.from_environment(
        **({"bin_dir": bin_dir} if bin_dir else {}),
        state=folder / "state",
        servers=SERVERS,
        profile=_profile(folder),
        server_resources=BEYOND_REACH,
        plaintext=is_plaintext,
        plaintext_links=is_plaintext,
        server_env=dict(server_env or {}),
    )
    return Stack(options, display)


def create_group(customer: Customer, name: str, mode: str, folder: Path, shares: int = 1) -> Path:
    """A group of degree 3; the file with its handle. `mode`: `mem` or `sync`. `shares`: so many groups share the load,
    and what is retained, so that each of them, too, reaches it while warming up."""
    sla = {
        "durability": DURABILITY[mode],
        "replication_degree": SERVERS,
        "request_size_bytes": REQUEST_BYTES,
        "rate_per_s": RATE_PER_S // shares,
        "retention_bytes": max(RETENTION_BYTES_MIN, RETENTION_BYTES // shares),
    }
    group = customer.create_group(name, sla)
    path = folder / f"{name}.json"
    write_text(path, json.dumps(customer.get(f"/v1/groups/{group['id']}/handle")), 0o600)
    return path


def _profile(folder: Path) -> Path:
    """The default cost profile with next to no cost, so that admission grants any rate."""
    default = REPOSITORY / "services" / "crates" / "placement" / "profiles" / "default.json"
    profile: dict[str, Any] = json.loads(default.read_text())
    profile["version"], profile["source"] = "beyond-reach", "for measuring without a budget in the way"
    for curves in profile["cpu"].values():
        for points in curves.values():
            if isinstance(points, list):
                for index, point in enumerate(points):
                    point["cpu_ns"] = 1 + index
    profile["cpu"]["read"]["page_ns"] = 0
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "profile.json"
    path.write_text(json.dumps(profile))
    return path
