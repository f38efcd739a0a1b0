"""Samples of a group's partitions as one of all. Pure."""

from typing import Any

SUMMED = ("append_per_s", "offered_per_s", "throttled_per_s", "committed_entries")
SLOWEST = ("p50_us", "p99_us")

Sample = dict[str, Any]


class Together:
    """Partitions report about once a second each. A round is over when one of them reports again."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._round: dict[str, Sample] = {}

    def take(self, sample: Sample) -> Sample | None:
        """`sample` has its `group`. Returns the sum of a round that is over, if one is: latencies are the slowest
        partition's."""
        group = sample["group"]
        own = {name: value for name, value in sample.items() if name != "group"}
        if self._partitions == 1:
            return own
        over = self._sum() if group in self._round else None
        self._round[group] = own
        if over is None and len(self._round) == self._partitions:
            return self._sum()
        return over

    def _sum(self) -> Sample:
        samples = list(self._round.values())
        self._round = {}
        found = {"at_ms": max(each["at_ms"] for each in samples), "epoch": max(each["epoch"] for each in samples)}
        found |= {name: sum(each[name] for each in samples) for name in SUMMED}
        for name in SLOWEST:
            found[name] = max((each[name] for each in samples if each[name] is not None), default=None)
        return found
