"""Requirements of a run on the machine, and its namespaces.

Every run is a process of its own in fresh network, mount and process namespaces. Its bridge, interfaces, network
namespaces, mounts and servers are inside them and end with their first process, also if that is killed. So no name must
be unique on the machine, and nothing can be left behind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

FAKETIME = "libfaketime (clock steps)"
_FAKETIME_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib")
_TOOLS = {"unshare": "util-linux", "setpriv": "util-linux", "mount": "mount", "ip": "iproute2", "tc": "iproute2"}
_TOOLS["nft"] = "nftables"
# It dies with its starter, and everything that runs inside dies with it.
_ENTER = ["setpriv", "--pdeathsig", "KILL", "--"]
_ENTER += ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
_PROBE = "ip link add probe type veth peer name probe2 && ip link add bridge0 type bridge && nft add table inet probe"
_NARROW_PROBE = "ip link add probe type veth peer name probe2 && tc qdisc add dev probe root tbf rate 1mbit "
_NARROW_PROBE += "burst 16kb latency 1s"
_PROBE_TIMEOUT_S = 20


class Unfit(Exception):
    """This machine cannot run chaos; the message names the missing parts and the remedy."""


def require() -> None:
    """Raise `Unfit` unless everything is there. No part is left out in silence."""
    if os.geteuid() != 0:
        raise Unfit(
            "Chaos needs root, to make network namespaces and mounts. Run it with sudo, or in a container as root."
        )
    missing = sorted({package for tool, package in _TOOLS.items() if shutil.which(tool) is None})
    if faketime() is None:
        missing.append("libfaketime")
    if missing:
        raise Unfit(
            f"Missing: {', '.join(missing)}. `make setup` installs them as root; by hand:\n"
            f"  apt-get install --no-install-recommends {' '.join(missing)}"
        )
    reason = _try(_PROBE)
    if reason is not None:
        raise Unfit(
            "This machine does not let chaos make namespaces, bridges or packet filters:\n"
            f"  {reason}\n"
            "In a container: give it CAP_SYS_ADMIN and CAP_NET_ADMIN (docker run --privileged).\n"
            "On a machine of your own: its kernel needs veth, bridge and nf_tables (modprobe veth bridge nf_tables)."
        )


def narrow_links_missing() -> str | None:
    """The reason why links cannot be made narrow here; None if they can."""
    reason = _try(_NARROW_PROBE)
    return reason and f"the kernel has no token bucket filter (tc qdisc tbf): {reason}"


def _try(script: str) -> str | None:
    """The error of the command in fresh namespaces; None without one."""
    command = [*_ENTER, "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False)
    return None if done.returncode == 0 else done.stderr.strip() or "unshare failed"


def inside(command: list[str]) -> list[str]:
    """The command, run in namespaces of its own that end with it."""
    return [*_ENTER, *command]


def faketime() -> Path | None:
    """The library that gives a process another wall clock, for several threads."""
    for folder in _FAKETIME_FOLDERS:
        found = sorted(Path(folder).glob("**/faketime/libfaketimeMT.so.1"))
        if found:
            return found[0]
    return None


def settle_in() -> None:
    """First step inside: folders that reach out of the namespaces are covered with empty file systems."""
    for folder in ("/run/netns", "/dev/shm"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
