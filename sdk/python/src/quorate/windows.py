"""How reads are spread over replicas: a window for each, adapted to latency as in FAST-TCP. Pure: (state, event, now).

The window of a replica grows while it answers as quickly as the quickest, and shrinks while it is slower. The next read
goes where the least is under way, by latency and window. `sdk/contract/reading.md` has the rule, which all SDKs share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorate import limits


@dataclass(slots=True)
class _Replica:
    window: float = limits.READ_WINDOW_FIRST
    outstanding: int = 0
    latency_s: float | None = None
    asked_at: float = float("-inf")
    is_probed: bool = False
    """Its latency is long ago: the next answer says all."""

    def is_forgotten(self, now: float) -> bool:
        return self.outstanding == 0 and now - self.asked_at >= limits.READ_PROBE_S

    def load_s(self) -> float:
        """The latency, times the part of the window that one more read would fill."""
        return (self.latency_s or 0.0) * (self.outstanding + 1) / self.window


class Windows:
    """`now` is any monotonic clock in seconds; replicas are named by their addresses."""

    def __init__(self) -> None:
        self._replicas: dict[str, _Replica] = {}

    def choose(self, now: float, ready: Iterable[str]) -> str | None:
        """The replica of the next read among those that are ready; None: there is none."""
        known = [(address, self._replicas.setdefault(address, _Replica())) for address in ready]
        if not known:
            return None
        forgotten = [one for one in known if one[1].is_forgotten(now)]
        if forgotten:
            return min(forgotten, key=lambda one: one[1].asked_at)[0]
        return min(known, key=lambda one: (one[1].load_s(), one[1].outstanding))[0]

    def sent(self, now: float, address: str) -> None:
        replica = self._replicas.setdefault(address, _Replica())
        replica.is_probed |= replica.is_forgotten(now)
        replica.outstanding += 1
        replica.asked_at = now

    def answered(self, address: str, latency_s: float) -> None:
        replica = self._replicas.get(address)
        if replica is None:
            return
        is_used = 2 * replica.outstanding >= replica.window
        replica.outstanding = max(0, replica.outstanding - 1)
        was_probed, replica.is_probed = replica.is_probed, False
        before = latency_s if replica.latency_s is None or was_probed else replica.latency_s
        replica.latency_s = before + limits.READ_LATENCY_PART * (latency_s - before)
        quickness = self._quickest_s() / max(replica.latency_s, 1e-9)
        if was_probed:
            replica.window = max(replica.window, quickness * limits.READ_WINDOW_FIRST)
        aim = quickness * replica.window + limits.READ_WINDOW_MORE
        window = min(2 * replica.window, (replica.window + aim) / 2, float(limits.READS_OUTSTANDING_MAX))
        if window < replica.window or is_used:
            replica.window = window

    def failed(self, address: str) -> None:
        """The read was not answered: its replica begins again."""
        replica = self._replicas.get(address)
        if replica is not None:
            replica.outstanding = max(0, replica.outstanding - 1)
            replica.window, replica.latency_s = limits.READ_WINDOW_FIRST, None

    def window(self, address: str) -> float:
        return self._replicas.get(address, _Replica()).window

    def keep(self, addresses: Iterable[str]) -> None:
        """Forget all other replicas."""
        kept = set(addresses)
        self._replicas = {address: one for address, one in self._replicas.items() if address in kept}

    def _quickest_s(self) -> float:
        return min(one.latency_s for one in self._replicas.values() if one.latency_s is not None)
