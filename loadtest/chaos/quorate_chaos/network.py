"""A network of network namespaces: one for each server and one for each coordinator, on a bridge.

Clients and the orchestrator are on the bridge itself. A packet filter in each namespace can refuse packets from or to
any of the others: one-way and full partitions, between two or of one from all. A link can also lose packets at random,
or be narrow: packets beyond its rate wait for up to a second, and then are lost.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

CLIENTS = "clients"
COORDINATOR = "coordinator"
# Three of them, where the fault's shape says so.
COORDINATORS = (COORDINATOR, "coordinator-2", "coordinator-3")
_NETWORK = "10.77.0"
_PREFIX = 24
_QUEUE = ["burst", "16kb", "latency", "1s"]
_RULES = """
table inet chaos {{
  set from {{ type ipv4_addr; }}
  set to {{ type ipv4_addr; }}
  chain loss {{ }}
  chain incoming {{ type filter hook input priority 0; ip saddr @from drop; jump loss; }}
  chain outgoing {{ type filter hook output priority 0; ip daddr @to drop; jump loss; }}
}}
"""


class Network:
    def __init__(self, servers: list[str], coordinators: list[str]) -> None:
        self.addresses = {CLIENTS: f"{_NETWORK}.254"}
        self.addresses |= {name: f"{_NETWORK}.{number}" for number, name in enumerate(coordinators, 100)}
        self.addresses |= {name: f"{_NETWORK}.{number}" for number, name in enumerate(servers, 1)}
        self._narrowed: list[list[str]] = []

    def create(self) -> None:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", "bridge0", "type", "bridge")
        _ip("addr", "add", f"{self.addresses[CLIENTS]}/{_PREFIX}", "dev", "bridge0")
        _ip("link", "set", "bridge0", "up")
        for name, address in self.addresses.items():
            if name == CLIENTS:
                continue
            _ip("netns", "add", name)
            _ip("link", "add", _device(name), "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", _device(name), "master", "bridge0", "up")
            _ip("-n", name, "addr", "add", f"{address}/{_PREFIX}", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
            self._nft(name, _RULES.format())

    def command(self, name: str, command: list[str]) -> list[str]:
        """The command, run in that namespace."""
        return ["ip", "netns", "exec", name, *command]

    def block(self, name: str, others: Iterable[str], incoming: bool = True, outgoing: bool = True) -> None:
        """Packets of these others do not reach `name`, or those of `name` do not reach them, or both."""
        addresses = ", ".join(self.addresses[other] for other in others if other != name)
        if addresses and incoming:
            self._nft(name, f"add element inet chaos from {{ {addresses} }}")
        if addresses and outgoing:
            self._nft(name, f"add element inet chaos to {{ {addresses} }}")

    def lose(self, name: str, percent: int) -> None:
        """Lose this share of all packets from and to `name`."""
        self._nft(name, f"add rule inet chaos loss numgen random mod 100 < {percent} drop")

    def narrow(self, name: str, kbit_per_s: int, incoming: bool = True, outgoing: bool = True) -> None:
        """Bound the rate from `name`, or to it, or either way."""
        ways = [["-n", name, "qdisc", "replace", "dev", "eth0"]] if outgoing else []
        ways += [["qdisc", "replace", "dev", _device(name)]] if incoming else []
        for way in ways:
            _tc(*way, "root", "tbf", "rate", f"{kbit_per_s}kbit", *_QUEUE)
            self._narrowed.append(["del" if word == "replace" else word for word in way])

    def unblock(self) -> None:
        """Remove all partitions, losses and bounds."""
        for name in self.addresses:
            if name != CLIENTS:
                self._nft(name, "flush set inet chaos from\nflush set inet chaos to\nflush chain inet chaos loss")
        for way in self._narrowed:
            _tc(*way, "root")
        self._narrowed.clear()

    def others(self, name: str) -> list[str]:
        return [other for other in self.addresses if other != name]

    def _nft(self, name: str, rules: str) -> None:
        subprocess.run(self.command(name, ["nft", "-f", "-"]), input=rules, text=True, check=True, timeout=10)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=10)


def _tc(*arguments: str) -> None:
    subprocess.run(["tc", *arguments], check=True, timeout=10)


def _device(name: str) -> str:
    """The bridge's end of a link."""
    return f"to-{name.replace('coordinator', 'coord')}"
