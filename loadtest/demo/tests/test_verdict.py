"""The judge finds each fault, and agrees with a plain count on every history."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from quorate_demo.verdict import Run, judge, merge


def runs_of(log: list[tuple[int, int]]) -> list[Run]:
    return merge(Run(offset, number, 1) for offset, number in log)


def test_a_good_replay_is_one_run() -> None:
    log = [(offset, offset) for offset in range(1000)]
    assert runs_of(log) == [Run(0, 0, 1000)]
    assert judge(runs_of(log), runs_of(log)).good


def test_each_fault_has_its_own_count() -> None:
    acked = [Run(0, 0, 10)]
    assert judge(acked, [Run(0, 0, 9)]).lost == 1
    assert judge(acked, [Run(0, 0, 10), Run(10, 4, 2)]).duplicated == 2
    swapped = judge(acked, [Run(0, 0, 4), Run(4, 5, 1), Run(5, 4, 1), Run(6, 6, 4)])
    assert (swapped.reordered, swapped.misplaced, swapped.lost) == (1, 2, 0)
    assert judge(acked, [Run(0, 0, 10)], corrupted=1).corrupted == 1
    for bad in (judge(acked, [Run(0, 0, 9)]), judge(acked, [Run(0, 0, 10)], corrupted=1), swapped):
        assert not bad.good


def test_an_unacknowledged_entry_is_not_good_either() -> None:
    """It would be billed."""
    assert not judge([Run(0, 0, 10)], [Run(0, 0, 11)]).good


numbers = st.lists(st.integers(0, 12), max_size=25)


@given(acked_numbers=st.sets(st.integers(0, 12)), log=numbers, shift=st.integers(0, 2))
def test_it_agrees_with_a_plain_count(acked_numbers: set[int], log: list[int], shift: int) -> None:
    acked = [(number + shift, number) for number in acked_numbers]
    read = list(enumerate(log))
    verdict = judge(runs_of(acked), runs_of(read))
    assert verdict.acked == len(acked_numbers)
    assert verdict.read_back == len(log)
    assert verdict.lost == len(acked_numbers - set(log))
    assert verdict.duplicated == len(log) - len(set(log))
    assert verdict.reordered == sum(1 for before, after in pairwise(log) if after <= before)
    assert verdict.misplaced == len({n for n in acked_numbers & set(log) if (n + shift, n) not in read})
