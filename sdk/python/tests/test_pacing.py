"""Pacing against the vectors that the Rust and TypeScript clients must pass too, and a writer that is paced."""

import itertools
import json
import pathlib
from collections import deque

import pytest

from quorate import wire
from quorate.codes import Code
from quorate.errors import Failure, HandleError
from quorate.handle import Handle, Limits
from quorate.pacing import Charges, Pacing
from quorate.writer import Failed, Writer

VECTORS = json.loads((pathlib.Path(__file__).parents[2] / "contract/vectors/pacing.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=[case["name"] for case in VECTORS["cases"]])
def test_batches_leave_when_the_vectors_say(case):
    pacing = Pacing(Charges.parse(case["charges"]) if case["charges"] else None)
    coming, waiting, now = deque(case["events"]), deque(), 0.0
    while coming or waiting:
        ready = float("inf")
        if waiting:
            batch = waiting[0]
            wait_s = pacing.take(now / 1e6, pacing.cost(batch["entries"], batch["entry_bytes"]))
            if wait_s == 0.0:
                assert now == pytest.approx(batch["sent_us"], abs=2), batch
                waiting.popleft()
                continue
            ready = now + wait_s * 1e6
        if not coming or ready <= coming[0]["at_us"]:
            now = ready
            continue
        event = coming.popleft()
        now = event["at_us"]
        if "rate_per_s" in event:
            pacing.set_rate(event["rate_per_s"], now / 1e6)
        else:
            waiting.append(event)


CHARGES = {
    "rate_per_s": 16,
    "tokens_per_s_milli": [16_000, 1_024_000, 0],
    "cost": {"fixed_milli": [1_000, 0, 0], "per_byte_milli": [0, 1_000, 0]},
    "short_batch": {"entries": 17, "lacking_milli": [0, 0, 0]},
}
"""Sixteen entries, and sixteen times 64 bytes, a second."""


def paced_writer(rate_per_s=16, charges=CHARGES):
    sessions = itertools.count(100)
    pacing = Pacing(Charges.parse(charges) if charges else None, 64)
    writer = Writer(Limits(), lambda: next(sessions), pacing=pacing)
    assert writer.on_attached(wire.Attached(1, wire.Role.HEAD, 2, 1, 256, 0, 1, 0, 0, rate_per_s, "h:1"), 1) == []
    return writer


def sent(writer, now):
    frames = wire.FrameSplitter(1 << 24).feed(b"".join(writer.take_frames(now)))
    return [(message.seq, message.entry_count) for message in map(wire.decode, frames)]


def append(writer, count, deadline=100.0):
    for number in range(count):
        assert writer.append(number, bytes(64), deadline) is None


def test_what_is_beyond_the_rate_waits_in_the_client_and_grows_no_dearer():
    writer = paced_writer()
    append(writer, 17)
    assert sent(writer, 0.0) == [(1, 17)]
    append(writer, 1)
    assert sent(writer, 0.0) == []
    assert writer.wake_at() == pytest.approx(1 / 17)
    append(writer, 16)
    assert sent(writer, 1.01 / 17) == [(2, 1)]
    assert sent(writer, 0.9) == []
    assert sent(writer, 1.01) == [(3, 16)]
    writer.on_acked([(1, 0), (2, 17), (3, 18)])
    assert writer.idle()
    assert writer.wake_at() == 100.02


def test_whoever_waits_past_the_deadline_is_refused_and_was_not_sent():
    writer = paced_writer()
    append(writer, 17)
    assert sent(writer, 0.0) == [(1, 17)]
    append(writer, 17, deadline=0.25)
    assert sent(writer, 0.0) == []
    [failed] = writer.on_time(writer.wake_at())
    assert isinstance(failed, Failed)
    assert not failed.unknown
    assert (failed.failure.code, failed.failure.retryable) == (Code.DEADLINE_EXCEEDED, True)
    append(writer, 17)
    assert sent(writer, 1.01) == [(2, 17)], "it took no tokens"


def test_what_is_sent_again_is_paid():
    writer = paced_writer()
    append(writer, 17)
    assert sent(writer, 0.0) == [(1, 17)]
    writer.on_refused(wire.Refused(wire.Kind.APPEND, 1, wire.RetryHint.HERE, Code.THROTTLED, 10, 1, "", ""), 0.0)
    assert sent(writer, 0.009) == []
    assert sent(writer, 0.02) == [(1, 17)]


def test_a_new_rate_holds_from_the_notice_on():
    writer = paced_writer()
    append(writer, 17)
    assert sent(writer, 0.0) == [(1, 17)]
    append(writer, 17)
    assert sent(writer, 0.0) == []
    assert writer.on_notice(wire.Notice(1, wire.Role.HEAD, 1, 1_600, "h:1")) == []
    assert sent(writer, 0.0) == []
    assert writer.wake_at() == pytest.approx(0.01)
    assert sent(writer, 0.0101) == [(2, 17)]


def test_there_is_room_for_what_the_rate_lets_pass_within_a_second():
    writer = paced_writer()
    append(writer, 15)
    assert writer.has_room()
    append(writer, 1)
    assert not writer.has_room(), "sixteen requests a second"
    sent(writer, 0.0)
    assert not writer.has_room(), "what is on its way is not done"
    writer.on_acked([(1, 0)])
    assert writer.has_room()
    assert writer.append_many("many", [b"x"] * 16, 100.0) is None
    assert not writer.has_room(), "entries count, not calls"
    writer.fail_all(Failure(Code.CLIENT_CLOSED))
    assert writer.append("large", bytes(15 * 64), 100.0) is None
    assert writer.has_room()
    append(writer, 1)
    assert not writer.has_room(), "an entry of fifteen times the size is as many requests"


def test_there_is_room_for_one_append_whatever_it_costs_and_without_a_rate_for_many():
    writer = paced_writer()
    append(writer, 1_000)
    assert not writer.has_room()
    assert paced_writer().has_room()
    unpaced = paced_writer(charges=None)
    append(unpaced, 1_000)
    assert unpaced.has_room()


def test_larger_entries_than_declared_are_told_of_once():
    writer = paced_writer()
    append(writer, 1)
    sent(writer, 0.0)
    assert writer.hint is None
    writer.append("large", bytes(100), 100.0)
    sent(writer, 0.0)
    assert "entries of 100 bytes exceed the group's declared request size of 64" in writer.hint
    writer.hint = None
    writer.append("large", bytes(200), 100.0)
    sent(writer, 0.0)
    assert writer.hint is None


def test_without_charges_nothing_waits():
    writer = paced_writer(charges=None)
    append(writer, 1_000)
    assert sent(writer, 0.0) == [(1, 1_000)]


def test_single_appends_share_batches_of_a_tenth_of_a_second():
    charges = CHARGES | {"rate_per_s": 1_600, "tokens_per_s_milli": [1_600_000, 102_400_000, 0]}
    writer = paced_writer(1_600, charges)
    sent(writer, 0.0)
    append(writer, 400)
    assert sent(writer, 0.0) == [(1, 170), (2, 170), (3, 60)]
    writer = paced_writer(16)
    sent(writer, 0.0)
    append(writer, 20)
    assert sent(writer, 0.0) == [(1, 17)], "shorter ones would cost more"


def test_the_handle_tells_charges_and_the_declared_size():
    handle = {
        "group_id": "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f",
        "endpoints": [{"address": "127.0.0.1:7001"}],
        "token": "secret",
    }
    assert Handle.parse({**handle, "sla": {"request_size_bytes": 64}}).request_size_bytes == 64
    assert Handle.parse(handle).request_size_bytes == 0
    assert Handle.parse({**handle, "charges": CHARGES}).charges == Charges.parse(CHARGES)
    assert Handle.parse({**handle, "charges": None}).charges is None
    for wrong in ({"rate_per_s": 0}, {"tokens_per_s_milli": [1]}, {"cost": {}}, {"tokens_per_s_milli": [-1, 0, 0]}):
        with pytest.raises(HandleError):
            Handle.parse({**handle, "charges": CHARGES | wrong})
