"""The entries that a tail keeps and drops."""

import pytest

from quorate import wire
from quorate.tail import TailState, entries_from


def message(*batches, next_offset=0):
    """ENTRIES of (base_offset, [entry, …])."""
    payloads = [wire.pack_entries(entries) for _, entries in batches]
    heads = [
        wire.EntriesBatch(base, 5, len(entries), len(payload), wire.crc32(payload))
        for (base, entries), payload in zip(batches, payloads, strict=True)
    ]
    return wire.Entries(1, next_offset, 0, 0, heads, b"".join(payloads))


def data(entries):
    return [(entry.offset, entry.data) for entry in entries]


def test_whole_batches_come_and_what_precedes_the_offset_is_dropped():
    answer = message((3, [b"3", b"4", b"5"]), (6, [b"6"]))
    assert data(entries_from(answer, 4)) == [(4, b"4"), (5, b"5"), (6, b"6")]
    assert data(entries_from(answer, 7)) == []


@pytest.mark.parametrize("batches", [((5, [b"5"]),), ((4, [b"4"]), (6, [b"6"]))])
def test_a_gap_is_an_error_of_the_server(batches):
    with pytest.raises(wire.WireError):
        entries_from(message(*batches), 4)


def test_entries_that_do_not_fill_their_batch_are_an_error():
    answer = message((0, [b"a", b"b"]))
    wrong = answer._replace(batches=[answer.batches[0]._replace(entry_count=3)])
    with pytest.raises(wire.WireError):
        entries_from(wrong, 0)


def test_goes_on_where_it_ended_and_drops_what_comes_twice():
    state = TailState(0, 1_000)
    state.on_entries(message((0, [b"0", b"1"])))
    state.on_entries(message((0, [b"0", b"1"]), (2, [b"2"])))  # the next replica begins at a batch's start
    assert state.next_offset == 3
    first, second = state.take(), state.take()
    assert data(first[0] + second[0]) == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert state.take() is None


def test_gives_credit_back_in_portions_and_no_more_than_was_used():
    state = TailState(0, 100)
    assert state.start() == 100
    returned = 0
    for number in range(20):
        state.on_entries(message((number, [b"x" * 6])))
        returned += state.take()[1]
    assert 0 < returned <= 20 * 10
    assert 20 * 10 - returned < 25


def test_a_new_subscription_counts_what_is_still_buffered():
    state = TailState(0, 100)
    state.on_entries(message((0, [b"x" * 36])))
    assert state.start() == 60
    state.on_entries(message((1, [b"x" * 96])))
    assert state.start() == 1
