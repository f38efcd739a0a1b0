"""Keys, cursors, handles and appends of groups with partitions, without servers."""

import asyncio
import json
import pathlib
import random
import uuid
from itertools import pairwise
from types import SimpleNamespace

import pytest

import quorate
from quorate.cursor import Cursor, LayoutChange, may_begin
from quorate.keys import KEY_HASH, partition_of
from quorate.merged import MergedTail
from quorate.partitioned import partitions_of
from quorate.rerouting import CALLS_IN_A_ROW, Call, Rerouting

VECTORS = json.loads((pathlib.Path(__file__).parents[2] / "contract/vectors/partitions.json").read_text())
GROUP = uuid.UUID(int=7)


def member(number, **more):
    return {
        "partition": number,
        "group_id": str(uuid.UUID(int=100 + number)),
        "epoch": 4,
        "endpoints": [{"server_id": 1, "address": f"127.0.0.1:{7000 + number}", "role": "sole"}],
        "token": f"token-{number}",
        "rate_per_s": 10,
        "charges": None,
        **more,
    }


def handle(partitions=3, **more):
    return {
        "group_id": str(GROUP),
        "name": "orders",
        "endpoints": [{"server_id": 1, "address": "127.0.0.1:7000", "role": "sole"}],
        "token": "token",
        "partitions": {
            "key_hash": 1,
            "layout": 2,
            "changes": [{"layout": 2, "from_partitions": 2, "to_partitions": 3, "ends": [5, 0]}],
            "members": [member(number) for number in range(partitions)],
            **more,
        },
    }


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["key_hex"][:16] or "empty")
def test_keys_find_the_partitions_of_the_vectors(case):
    assert VECTORS["key_hash"] == KEY_HASH
    key = bytes.fromhex(case["key_hex"])
    assert {count: partition_of(key, int(count)) for count in case["partitions"]} == case["partitions"]


def test_text_is_a_key_in_utf8():
    assert partition_of("Grüße", 256) == partition_of("Grüße".encode(), 256)
    with pytest.raises(ValueError, match="at least one partition"):
        partition_of("a", 0)


def test_keys_spread_and_a_growth_moves_them_to_new_partitions_alone():
    keys = [f"key-{number}" for number in range(20_000)]
    before, after = ([partition_of(key, count) for key in keys] for count in (12, 16))
    counts = [after.count(partition) for partition in range(16)]
    assert min(counts) > 0.85 * len(keys) / 16
    assert max(counts) < 1.15 * len(keys) / 16
    moved = [to for was, to in zip(before, after, strict=True) if was != to]
    assert set(moved) == {12, 13, 14, 15}
    assert len(moved) == pytest.approx(len(keys) / 4, rel=0.05)


def test_a_cursor_is_a_text_and_back():
    cursor = Cursor(GROUP, (0, 17, 2**64 - 1))
    assert str(cursor) == f"qc1:{GROUP.hex}:0,17,{2**64 - 1}"
    assert Cursor.parse(str(cursor)) == cursor


@pytest.mark.parametrize(
    "text",
    ["", "qc1:", f"qc1:{GROUP.hex}:", f"qc1:{GROUP}:1", f"qc2:{GROUP.hex}:1", f"qc1:{GROUP.hex}:1,-2",
     f"qc1:{GROUP.hex}:1, 2", f"qc1:{GROUP.hex}:{2**64}", f"qc1:{GROUP.hex}:" + ",".join(["1"] * 257)],
)  # fmt: skip
def test_other_texts_are_no_cursors(text):
    with pytest.raises(quorate.CursorError):
        Cursor.parse(text)


def test_a_cursor_of_fewer_partitions_goes_on_and_others_are_refused():
    cursor = Cursor(GROUP, (3, 4))
    assert cursor.within(GROUP, 4).offsets == (3, 4, 0, 0)
    with pytest.raises(quorate.CursorError, match="2 partitions, and the group has 1"):
        cursor.within(GROUP, 1)
    with pytest.raises(quorate.CursorError, match="is of the group"):
        cursor.within(uuid.UUID(int=8), 4)


def test_a_checkpoint_is_a_cursor():
    saved = {"consumer": "c", "offsets": [{"partition": 2, "next_offset": 9}, {"partition": 0, "next_offset": 4}]}
    assert Cursor.of_checkpoint(GROUP, saved).offsets == (4, 0, 9)
    assert Cursor.of_checkpoint(GROUP, {"offsets": []}) == Cursor.beginning(GROUP)


def test_new_partitions_come_after_the_ends_of_the_former_ones():
    changes = [LayoutChange(1, 1, 3, (70,)), LayoutChange(2, 3, 4, (99, 7, 8))]
    assert may_begin(0, changes, {})
    assert not may_begin(2, changes, {0: 69})
    assert may_begin(2, changes, {0: 70})
    assert not may_begin(3, changes, {0: 99, 1: 7, 2: 7})
    assert may_begin(3, changes, {0: 99, 1: 7, 2: 8})


def test_a_handle_has_one_for_each_partition():
    parsed = quorate.Handle.parse(handle())
    members = parsed.partitions.members
    assert [one.group_id.int for one in members] == [100, 101, 102]
    assert [one.token for one in members] == ["token-0", "token-1", "token-2"]
    assert members[2].addresses() == ["127.0.0.1:7002"]
    assert parsed.partitions.changes == (LayoutChange(2, 2, 3, (5, 0)),)
    assert "token" not in repr(parsed)


def test_a_partition_may_be_without_servers():
    source = handle()
    source["partitions"]["members"][1] = member(1, endpoints=[])
    assert quorate.Handle.parse(source).partitions.members[1].endpoints == ()


@pytest.mark.parametrize(
    "members", [[], [member(1)], [member(0), member(2)], [member(0, endpoints=[{"address": "x"}])]]
)
def test_malformed_partitions_are_refused(members):
    with pytest.raises(quorate.HandleError):
        quorate.Handle.parse(handle(members=members))


def test_a_key_hash_of_another_version_is_refused():
    with pytest.raises(quorate.HandleError, match=r"version 2.*upgrade"):
        partitions_of(quorate.Handle.parse(handle(key_hash=2)))


def test_a_group_with_partitions_is_not_connected_to_as_one_log():
    with pytest.raises(quorate.HandleError, match="3 partitions: use connect_partitioned"):
        asyncio.run(quorate.connect(handle()))


def calls(count):
    return [Call(number, b"", f"key-{number % 5}", None, 10.0, None) for number in range(count)]


def test_what_was_refused_is_appended_again_in_the_order_of_the_calls():
    waiting, rerouting = calls(40), Rerouting(4)
    random.Random(1).shuffle(refused := waiting[:25])
    rerouting.is_changing = True
    for call in refused + waiting[25:]:
        rerouting.hold(call)
    assert rerouting.use(6) == waiting
    assert (rerouting.held, rerouting.is_changing, rerouting.partitions) == (0, False, 6)


def test_calls_that_are_late_do_not_happen():
    rerouting, (first, second) = Rerouting(2), calls(2)
    first.ends_at = 5.0
    for call in (first, second):
        rerouting.hold(call)
    assert rerouting.take_late(5.0) == [first]
    assert rerouting.give_up() == [second]


def test_calls_without_a_key_take_turns_some_in_a_row():
    rerouting = Rerouting(3)
    call = Call(1, b"", None, None, 1.0, None)
    placed = [rerouting.place(call) for _ in range(9 * CALLS_IN_A_ROW)]
    assert {placed.count(partition) for partition in range(3)} == {3 * CALLS_IN_A_ROW}
    turns = sum(one != other for one, other in pairwise(placed))
    assert turns == 9
    call.partition = 2
    assert rerouting.place(call) == 2


def test_a_merged_tail_that_is_closed_ends_an_iteration_that_waits():
    async def run():
        tail = MergedTail(SimpleNamespace(_tails=set(), _source=None, partitions=0), Cursor(GROUP, ()))
        waiting = asyncio.ensure_future(anext(tail, None))
        await asyncio.sleep(0)
        assert not waiting.done()
        await tail.aclose()
        assert await asyncio.wait_for(waiting, 5) is None
        assert await anext(tail, None) is None

    asyncio.run(run())
