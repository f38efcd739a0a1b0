"""Sizes of loops, and conclusions. The programs need the whole stack."""

from __future__ import annotations

from quorate_sla import billing, loops


def test_a_loop_is_as_long_as_its_budget_lasts() -> None:
    assert loops.entries_of(64, 30) == loops.entries_of(16, 30) == 30_000
    assert loops.entries_of(4_096, 30) == 30_000 // 64


def test_one_lost_entry_misses_the_goal() -> None:
    assert loops.figure({"python 16 B": 0, "typescript 16 B": 0}, 30).met
    assert not loops.figure({"python 16 B": 0, "typescript 16 B": 1}, 30).met


def test_what_is_billed_twice_does_not_make_up_for_what_is_not_billed() -> None:
    even = billing.Run("redis", 10, 0, 10, 10)
    assert billing.figure([even, even]).met
    off = billing.figure([billing.Run("redis", 10, 0, 10, 11), billing.Run("head", 10, 1, 11, 10)])
    assert (off.value, off.met) == (2, False)


def test_every_fault_has_its_turn() -> None:
    assert sorted(billing.faults(20)) == sorted(billing.FAULTS * 5)
