"""Duration of each load: an unmeasured run of the cell first, then a ramp and the window."""

from __future__ import annotations

from dataclasses import dataclass

from quorate_harness.cells import CELL_64B, Cell

JVM_WARMUP_S = 30.0  # load of a Java peer and its client in all, spread over the cells, for each start


@dataclass(frozen=True)
class Load:
    """A client's load: a closed loop, first unmeasured, then counted."""

    size_bytes: int
    outstanding: int
    warmup_s: float
    window_s: float

    def line(self) -> str:
        """The line for a client's stdin (loadtest/peers/go/window, loadtest/peers/java/window)."""
        return f"{self.size_bytes} {self.outstanding} {self.warmup_s:g} {self.window_s:g}\n"

    @property
    def duration_s(self) -> float:
        return self.warmup_s + self.window_s


@dataclass(frozen=True)
class Pace:
    """Durations. The cell of 64 B with 1,024 outstanding is first and warmed longest: it reaches retention last."""

    first_warmup_s: float = 6.0
    warmup_s: float = 3.0
    jvm_first_warmup_s: float = 15.0
    jvm_warmup_s: float = 5.0
    ramp_s: float = 1.0
    window_s: float = 5.0
    alone_window_s: float = 3.0  # enough for its latency
    close_s: float = 0.1  # the window of an unmeasured run

    def warmup(self, cell: Cell, is_java: bool) -> Load:
        """The unmeasured run of the same shape: it touches memory and files, and compiles code."""
        if cell in CELL_64B.values():
            warmup_s = self.jvm_first_warmup_s if is_java else self.first_warmup_s
        else:
            warmup_s = self.jvm_warmup_s if is_java else self.warmup_s
        return Load(cell.size_bytes, cell.outstanding, warmup_s, self.close_s)

    def measured(self, cell: Cell) -> Load:
        window_s = self.alone_window_s if cell.is_alone else self.window_s
        return Load(cell.size_bytes, cell.outstanding, self.ramp_s, window_s)


USUAL = Pace()
QUICK = Pace(
    first_warmup_s=1, warmup_s=0.5, jvm_first_warmup_s=3, jvm_warmup_s=1, ramp_s=0.5, window_s=1, alone_window_s=1
)
assert USUAL.jvm_first_warmup_s + 3 * USUAL.jvm_warmup_s == JVM_WARMUP_S
