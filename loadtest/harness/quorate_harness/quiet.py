"""Windows that other processes disturbed are measured again, within bounds; the least disturbed one counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

OTHERS_SHARE_MAX = 0.05  # part of the machine's processor time in a window: others that take more disturb it


class Window(Protocol):
    @property
    def others_share(self) -> float:
        """Part of the machine's processor time in the window that neither servers nor client used."""


W = TypeVar("W", bound=Window)


@dataclass
class Quiet:
    """`attempts_max` for each window, `wait_s` before one more; `budget_s` for all attempts beyond the first."""

    attempts_max: int
    wait_s: float
    budget_s: float
    now: Callable[[], float] = field(default=time.monotonic)
    sleep: Callable[[float], None] = field(default=time.sleep)

    def least_disturbed(self, measure: Callable[[], W]) -> tuple[W, int]:
        """The best of the attempts, and how many were made."""
        best, attempts = measure(), 1
        while is_disturbed(best.others_share) and attempts < self.attempts_max and self.budget_s > 0:
            begun = self.now()
            self.sleep(self.wait_s)
            best, attempts = min(best, measure(), key=lambda window: window.others_share), attempts + 1
            self.budget_s -= self.now() - begun
        return best, attempts


def is_disturbed(others_share: float) -> bool:
    return others_share > OTHERS_SHARE_MAX
