"""Sizes of loops, and conclusions. The programs need the whole stack."""

from __future__ import annotations

from quorate_sla import loops


def test_a_loop_is_as_long_as_its_budget_lasts() -> None:
    assert loops.entries_of(64, 30) == loops.entries_of(16, 30) == 30_000
    assert loops.entries_of(4_096, 30) == 30_000 // 64


def test_one_lost_entry_misses_the_goal() -> None:
    assert loops.figure({"python 16 B": 0, "typescript 16 B": 0}, 30).met
    assert not loops.figure({"python 16 B": 0, "typescript 16 B": 1}, 30).met
