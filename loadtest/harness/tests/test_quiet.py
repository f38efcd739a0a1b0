from __future__ import annotations

from dataclasses import dataclass

from quorate_harness.quiet import Quiet


@dataclass(frozen=True)
class Seen:
    others_share: float


def _quiet(shares: list[float], budget_s: float = 100.0) -> tuple[float, int, list[float]]:
    """The counting window's share of others, the number of attempts, and their waits. Each window takes 10 s."""
    windows = [Seen(share) for share in shares]
    clock, waits = iter(range(0, 1000, 10)), list[float]()
    quiet = Quiet(3, 2.0, budget_s, now=lambda: float(next(clock)), sleep=waits.append)
    window, attempts = quiet.least_disturbed(lambda: windows.pop(0))
    return window.others_share, attempts, waits


def test_the_least_disturbed_attempt_counts() -> None:
    assert _quiet([0.01]) == (0.01, 1, [])
    assert _quiet([0.3, 0.04]) == (0.04, 2, [2.0])
    assert _quiet([0.3, 0.1, 0.2]) == (0.1, 3, [2.0, 2.0])


def test_attempts_end_with_the_budget() -> None:
    assert _quiet([0.3, 0.2, 0.01], budget_s=5.0) == (0.2, 2, [2.0])
    assert _quiet([0.3, 0.01], budget_s=0.0) == (0.3, 1, [])
