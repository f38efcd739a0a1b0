"""The book against counting by steps, and its rules one by one."""

import random

import pytest

from quorate_prober import limits
from quorate_prober.book import MINUTE_MS, Book, Minute

BEGIN_MS = 1_700_000_040_000
LATER_MS = BEGIN_MS + MINUTE_MS + int(limits.SETTLE_S * 1_000)


def at(second: float) -> int:
    return BEGIN_MS + int(second * 1_000)


@pytest.fixture
def book() -> Book:
    made = Book()
    made.watch([1, 2], BEGIN_MS - 1)
    return made


def told(book: Book) -> Minute:
    return book.minute(BEGIN_MS, LATER_MS)


def test_a_quiet_minute(book: Book) -> None:
    book.answered(1, at(5))
    assert told(book) == Minute(BEGIN_MS, (1, 2), {})


def test_an_outage_lasts_from_the_first_miss_to_the_answer(book: Book) -> None:
    assert not book.missed(1, at(10))
    assert book.missed(1, at(11.25))
    assert not book.missed(1, at(12.5))  # told already
    book.answered(1, at(13))
    assert told(book).failed == {1: [(at(10), at(13))]}


def test_one_miss_is_no_outage(book: Book) -> None:
    book.missed(1, at(10))
    book.answered(1, at(11.5))
    book.missed(1, at(20))
    assert told(book).failed == {}


def test_an_outage_across_minutes_is_told_in_each(book: Book) -> None:
    book.missed(1, at(59))
    book.missed(1, at(60.25))
    assert told(book).failed == {1: [(at(59), at(60))]}
    book.answered(1, at(75))
    assert book.minute(BEGIN_MS + MINUTE_MS, LATER_MS + MINUTE_MS).failed == {1: [(at(60), at(75))]}


def test_a_server_is_watched_from_the_first_whole_minute(book: Book) -> None:
    book.watch([2, 3], at(5))
    assert told(book).watched == (2,)
    assert book.minute(BEGIN_MS + MINUTE_MS, LATER_MS + MINUTE_MS).watched == (2, 3)
    book.answered(1, at(6))  # gone
    assert not book.missed(1, at(7))


def test_a_prober_that_stood_still_says_nothing(book: Book) -> None:
    book.missed(1, at(10))
    book.missed(1, at(11))
    book.stood_still(at(12), at(19))
    assert not book.missed(1, at(18))  # it began while nothing ran
    assert told(book) == Minute(BEGIN_MS, (), {})
    later = book.minute(BEGIN_MS + MINUTE_MS, LATER_MS + MINUTE_MS)
    assert later == Minute(BEGIN_MS + MINUTE_MS, (1, 2), {})


def test_a_server_that_comes_and_goes_is_not_told(book: Book) -> None:
    for second in range(0, 2 * limits.FAILURES_MAX + 2, 2):
        book.missed(1, at(second))
        book.missed(1, at(second + 0.5))
        book.answered(1, at(second + 1))
    assert told(book) == Minute(BEGIN_MS, (2,), {})


def test_what_was_told_is_forgotten(book: Book) -> None:
    book.missed(1, at(1))
    book.missed(1, at(2))
    book.answered(1, at(3))
    book.forget(BEGIN_MS + MINUTE_MS)
    assert told(book).failed == {}


@pytest.mark.parametrize("seed", range(50))
def test_counted_by_steps(seed: int) -> None:
    """Knocks each 250 ms at a server that is away at random times: steps between a missed pair and an answer failed."""
    rng = random.Random(seed)
    book = Book()
    book.watch([1], BEGIN_MS - 1)
    away, run_ms, first_ms = False, 0, 0
    failed: set[int] = set()
    for step in range(240 + 12):
        now = BEGIN_MS + 250 * step
        away = away if rng.random() < 0.95 else not away
        if away:
            first_ms = first_ms if run_ms else now
            run_ms += 1
            book.missed(1, now)
            failed |= set(range(first_ms, now + 250, 250)) if run_ms >= limits.MISSES_MIN else set()
        else:
            book.answered(1, now)
            run_ms = 0
    said = {ms for begin, end in told(book).failed.get(1, []) for ms in range(begin, end, 250)}
    assert said == {ms for ms in failed if BEGIN_MS <= ms < BEGIN_MS + MINUTE_MS}
