"""A network of the run's own, in which a packet filter can cut processes off from one another.

All talk over loopback. Each server, the coordinator, each prober and the clients have a group id of their own, by which
the filter knows whose packet it sees. The network ends with its last process, so nothing is left behind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

INSIDE = "QUORATE_SLA_APART"
CLIENTS_GROUP_ID = 60_000
_FIRST_GROUP_ID = 60_001
_TOOLS = {"unshare": "util-linux", "ip": "iproute2", "nft": "nftables"}
_RULES = "table inet cuts {\n chain output {\n  type filter hook output priority 0\n }\n}\n"
_PROBE = f"ip link set lo up && nft -f - <<'END'\n{_RULES}END\nnft add rule inet cuts output meta skgid 1 drop"


def missing() -> str | None:
    """The reason why this machine cannot do it; None: it can."""
    if os.geteuid() != 0:
        return "it needs root"
    packages = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    if packages:
        return f"missing: {', '.join(packages)} (`make setup` installs them as root)"
    tried = subprocess.run(["unshare", "--net", "sh", "-ec", _PROBE], capture_output=True, text=True, timeout=20)
    return tried.stderr.strip() or None


def enter() -> None:
    """Go on in a network of its own: this process is replaced by itself."""
    if INSIDE in os.environ or missing():
        return
    os.environ[INSIDE] = "1"
    inside = [
        "sh",
        "-c",
        'ip link set lo up && exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "quorate_sla.cli",
        *sys.argv[1:],
    ]
    os.execvp("unshare", ["unshare", "--net", *inside])


def is_inside() -> bool:
    return INSIDE in os.environ


def group_ids(names: Iterable[str]) -> dict[str, int]:
    """A group id for each of these processes; none where nothing can be cut off."""
    return {name: _FIRST_GROUP_ID + number for number, name in enumerate(names)} if is_inside() else {}


class Filter:
    """Cuts processes off. `group_ids`: of those that have one. `ports`: on which they listen, by name."""

    def __init__(self, group_ids: Mapping[str, int], ports: Mapping[str, int]) -> None:
        self._group_ids = {**group_ids, "clients": CLIENTS_GROUP_ID}
        self._ports = ports

    @contextmanager
    def cut(self, *pairs: tuple[str, str]) -> Iterator[None]:
        """Drop the packets of the first to the port of the second, of each pair."""
        rules = [
            f"add rule inet cuts output meta skgid {self._group_ids[one]} tcp dport {self._ports[other]} drop"
            for one, other in pairs
        ]
        _nft(_RULES + "\n".join(rules) + "\n")
        try:
            yield
        finally:
            _nft("delete table inet cuts\n")


def _nft(rules: str) -> None:
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True, timeout=20)
