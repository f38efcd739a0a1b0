"""Bad bytes on the data plane: a clear answer, and no harm to others.

Each test ends with a check that a well-behaved neighbour, attached all the time, still appends.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from zlib import crc32

import pytest

from conftest import Owner
from quorate import wire
from quorate.codes import Code
from wire_client import CHANNEL, WireClient, append_frame


@pytest.fixture(params=["in_memory", "persistent"])
def durability(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def neighbour(bob: Owner, durability: str) -> Iterator[WireClient]:
    """Another customer's connection to the same fleet; it must still work after the test."""
    handle = bob.handle(durability)
    with WireClient(handle) as client:
        attached = client.attach(handle["group_id"], handle["token"])
        assert isinstance(attached, wire.Attached)
        assert isinstance(client.append(1, [b"before"], floor_index=attached.last_index), wire.Acked)
        yield client
        assert isinstance(client.append(2, [b"after"], floor_index=attached.last_index), wire.Acked)


@pytest.fixture
def attached(alice: Owner, durability: str, neighbour: WireClient) -> Iterator[WireClient]:
    """A connection to alice's group that a test may abuse."""
    handle = alice.handle(durability)
    with WireClient(handle) as client:
        answer = client.attach(handle["group_id"], handle["token"])
        assert isinstance(answer, wire.Attached)
        client.floor_index = answer.last_index  # type: ignore[attr-defined]
        client.begin = answer.commit_offset  # type: ignore[attr-defined]
        yield client


def goodbye(client: WireClient, *codes: Code) -> wire.Goodbye:
    """The server gives the reason and closes."""
    answer = client.expect(wire.Goodbye)
    assert answer.code in codes, f"{Code(answer.code).name}: {answer.message}"
    assert answer.message, "a GOODBYE has a reason"
    assert client.receive() is None
    return answer


def refused(answer: object, code: Code) -> wire.Refused:
    assert isinstance(answer, wire.Refused), f"expected a refusal, got {answer}"
    assert answer.code == code, f"{Code(answer.code).name}: {answer.message}"
    assert answer.outcome == wire.Outcome.REFUSED
    assert answer.message
    return answer


def commit_offset(client: WireClient) -> int:
    client.send(wire.encode(wire.Status(99), CHANNEL))
    return client.expect(wire.StatusOk).commit_offset


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", secrets.token_bytes(4096), b"\0" * 64])
def test_garbage_instead_of_a_handshake(alice: Owner, neighbour: WireClient, garbage: bytes) -> None:
    with WireClient(alice.handle(), hello=False) as client:
        client.send(garbage)
        goodbye(client, Code.PROTOCOL_ERROR, Code.FRAME_TOO_LARGE, Code.CHECKSUM_MISMATCH)


def test_garbage_after_the_handshake(attached: WireClient) -> None:
    attached.send(b"\x10\0\0\0" + secrets.token_bytes(60))
    goodbye(attached, Code.PROTOCOL_ERROR, Code.FRAME_TOO_LARGE, Code.CHECKSUM_MISMATCH)


def test_a_version_from_the_future(alice: Owner, neighbour: WireClient) -> None:
    with WireClient(alice.handle(), hello=False) as client:
        client.send(wire.encode(wire.Hello(99, 100, "tomorrow")))
        goodbye(client, Code.UNSUPPORTED_VERSION)


def test_a_truncated_frame_appends_nothing(alice: Owner, durability: str, attached: WireClient) -> None:
    frame = append_frame(1, [b"cut short"], floor_index=attached.floor_index)
    attached.send(frame[:-3])
    attached.shut_writing()
    assert attached.receive() is None or attached.receive() is None  # a GOODBYE may come first
    handle = alice.handle(durability)
    with WireClient(handle) as other:
        assert other.attach(handle["group_id"], handle["token"]).commit_offset == attached.begin


def test_a_frame_longer_than_allowed(attached: WireClient) -> None:
    header = (attached.limits.max_frame_bytes + 1).to_bytes(4, "little") + bytes([wire.Kind.APPEND, 0, 64, 0])
    attached.send(header + CHANNEL.to_bytes(4, "little") + b"\0\0\0\0")
    goodbye(attached, Code.FRAME_TOO_LARGE)


def test_a_head_whose_checksum_is_wrong(attached: WireClient) -> None:
    frame = bytearray(append_frame(1, [b"bit rot"]))
    frame[20] ^= 1
    attached.send(bytes(frame))
    goodbye(attached, Code.CHECKSUM_MISMATCH)


def test_a_payload_whose_checksum_is_wrong_is_not_appended(attached: WireClient) -> None:
    answer = attached.append(1, [b"bit rot"], payload_crc=12345, floor_index=attached.floor_index)
    if isinstance(answer, wire.Goodbye):
        assert answer.code == Code.CHECKSUM_MISMATCH
        return
    refused(answer, Code.CHECKSUM_MISMATCH)
    assert commit_offset(attached) == attached.begin


def test_entries_that_do_not_add_up(attached: WireClient) -> None:
    payload = b"\xff\xff\0\0short"
    answer = attached.append(
        1,
        [],
        entry_count=1,
        payload=payload,
        payload_len=len(payload),
        payload_crc=crc32(payload),
        floor_index=attached.floor_index,
    )
    refused(answer, Code.BATCH_MALFORMED)
    assert commit_offset(attached) == attached.begin


def test_an_entry_over_the_limit(attached: WireClient) -> None:
    too_large = bytes(attached.limits.max_entry_bytes + 1)
    answer = attached.append(1, [too_large], floor_index=attached.floor_index)
    refused(answer, Code.ENTRY_TOO_LARGE)
    assert commit_offset(attached) == attached.begin


def test_the_largest_entry_is_taken(attached: WireClient) -> None:
    largest = bytes(attached.limits.max_entry_bytes)
    assert isinstance(attached.append(1, [largest], floor_index=attached.floor_index), wire.Acked)


def test_more_entries_than_a_batch_may_have(attached: WireClient) -> None:
    answer = attached.append(1, [b""] * (attached.limits.max_batch_entries + 1), floor_index=attached.floor_index)
    refused(answer, Code.BATCH_TOO_LARGE)


def test_a_replayed_frame_is_ordered_once(attached: WireClient) -> None:
    frame = append_frame(1, [b"only once"], floor_index=attached.floor_index)
    answers = []
    for _ in range(3):
        attached.send(frame)
        answers.append(attached.expect(wire.Acked).acks[0])
    assert len(set(answers)) == 1
    assert commit_offset(attached) == attached.begin + 1


def test_a_frame_replayed_on_another_connection_is_ordered_once(
    alice: Owner, durability: str, attached: WireClient
) -> None:
    """A recorded frame cannot be appended twice by sending it again on another connection."""
    frame = append_frame(1, [b"recorded"], floor_index=attached.floor_index)
    attached.send(frame)
    first = attached.expect(wire.Acked).acks[0]
    handle = alice.handle(durability)
    with WireClient(handle) as other:
        other.attach(handle["group_id"], handle["token"], session=attached.session)
        other.send(frame)
        assert other.expect(wire.Acked).acks[0] == first
        assert commit_offset(other) == attached.begin + 1


def test_a_gap_in_the_sequence(attached: WireClient) -> None:
    assert isinstance(attached.append(1, [b"one"], floor_index=attached.floor_index), wire.Acked)
    refused(attached.append(3, [b"three"], floor_index=attached.floor_index), Code.SEQUENCE_GAP)
    assert isinstance(attached.append(2, [b"two"], floor_index=attached.floor_index), wire.Acked)


def test_a_channel_that_was_not_attached(alice: Owner, neighbour: WireClient) -> None:
    with WireClient(alice.handle()) as client:
        answer = client.append(1, [b"to nobody"])
        assert isinstance(answer, wire.Refused | wire.Goodbye)
        assert answer.code == Code.UNKNOWN_CHANNEL


def test_a_silent_connection_is_closed_without_harm(alice: Owner, neighbour: WireClient) -> None:
    with WireClient(alice.handle(), hello=False) as silent:
        silent.send(b"\x05")
        silent.shut_writing()
        while silent.receive() is not None:
            pass
