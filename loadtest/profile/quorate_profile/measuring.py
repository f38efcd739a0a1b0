"""Cells and mixes, measured by the load driver. Disturbed ones are measured again: the least disturbed counts.

A profile is fitted to all of them alike. A measurement that another process or the machine's host disturbed would be
charged to every tenant from then on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from quorate_harness.quiet import Quiet, is_disturbed
from quorate_harness.unbudgeted import DURABILITY

Groups: TypeAlias = dict[str, list[Path]]  # handles, by mode
Measurement: TypeAlias = dict[str, Any]  # a cell or a mix, as the driver writes it
MODES = {durability: mode for mode, durability in DURABILITY.items()}
ATTEMPTS_MAX = 4
WAIT_S = 1.0
BUDGET_S = 60.0  # for all that is measured again


class Servers(Protocol):
    """That groups are on, and the driver."""

    @property
    def shards(self) -> int: ...
    @property
    def groups(self) -> Groups: ...
    def drive(self, what: str, groups: Groups, more: list[str]) -> None: ...


@dataclass(frozen=True)
class Window:
    measured: Measurement

    @property
    def others_share(self) -> float:
        return others_share(self.measured)


def others_share(measured: Measurement) -> float:
    """Part of the machine that neither servers nor client used meanwhile, with the time its host took."""
    return float(measured["others_cores"]) / (os.cpu_count() or 1)


@dataclass
class Measuring:
    """`again`: how many windows were measured again; `disturbed`: how many are that count."""

    seconds: float
    mix_count: int
    tell: Callable[[str], None]
    quiet: Quiet = field(default_factory=lambda: Quiet(ATTEMPTS_MAX, WAIT_S, BUDGET_S))
    again: int = 0
    disturbed: int = 0

    def cells(self, servers: Servers, groups: int, repeats: int, out: Path, sizes: str | None, *more: str) -> None:
        """With so many groups of each durability. `sizes`: bytes, with commas; None: the driver's own."""
        some = {mode: handles[:groups] for mode, handles in servers.groups.items()}

        def drive(chosen: Groups, repeats: int, out: Path, sizes: str | None) -> None:
            flags = ["--sizes", sizes] if sizes else []
            pace = ["--seconds", str(self.seconds), "--repeats", str(repeats), "--shards", str(servers.shards)]
            servers.drive("profile", chosen, [*pace, *more, *flags, "--json", str(out)])

        def one(number: int, cell: Measurement, out: Path) -> None:
            mode = MODES[cell["durability"]]
            drive({mode: some[mode]}, 1, out, str(cell["size_bytes"]))

        drive(some, repeats, out, sizes)
        self._calm(out, one)

    def mixes(self, servers: Servers, seed: int, out: Path) -> None:
        def drive(out: Path, *flags: str) -> None:
            drawn = ["--seconds", str(self.seconds), "--mixes", str(self.mix_count), "--seed", str(seed)]
            servers.drive("profile-mixes", servers.groups, [*drawn, *flags, "--json", str(out)])

        drive(out)
        self._calm(out, lambda number, _, out: drive(out, "--only", str(number)))

    def _calm(self, file: Path, measure: Callable[[int, Measurement, Path], None]) -> None:
        """Puts the least disturbed attempt in the place of each."""
        found, single = json.loads(file.read_text()), file.with_name("again.json")

        def least_disturbed(number: int, measured: Measurement) -> tuple[Window, int]:
            first = iter([Window(measured)])

            def attempt() -> Window:
                if (window := next(first, None)) is not None:
                    return window
                self.tell(f"again: others used {measured['others_cores']:.2f} cores")
                measure(number, measured, single)
                return Window(json.loads(single.read_text())[0])

            return self.quiet.least_disturbed(attempt)

        for number, measured in enumerate(found):
            best, attempts = least_disturbed(number, measured)
            self.again += attempts > 1
            self.disturbed += is_disturbed(best.others_share)
            found[number] = best.measured
        file.write_text(json.dumps(found) + "\n")
