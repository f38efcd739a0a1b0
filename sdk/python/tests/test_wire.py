"""The codec against the golden vectors that the Rust and TypeScript codecs must pass too."""

import json
import random
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from quorate import wire
from quorate.codes import Code

CONTRACT = Path(__file__).parents[2] / "contract"
VECTORS = json.loads((CONTRACT / "vectors/wire.json").read_text())
MESSAGES = {
    getattr(wire.Kind, name): getattr(wire, "".join(part.capitalize() for part in name.split("_")))
    for name in wire.Kind.__members__
}


def names(vectors):
    return [vector["name"] for vector in vectors]


def message_of(vector):
    fields = dict(vector["fields"])
    message = MESSAGES[vector["kind"]]
    payload = bytes.fromhex(vector.get("payload_hex", ""))
    if message is wire.Attach:
        fields["group"] = uuid.UUID(fields["group"])
    if message is wire.Acked:
        return wire.Acked([(int(ack["seq"]), int(ack["base_offset"])) for ack in fields["acks"]])
    if message is wire.Entries:
        fields["batches"] = [wire.EntriesBatch(**{k: int(v) for k, v in batch.items()}) for batch in fields["batches"]]
        fields["payload"] = payload
    if message is wire.Append:
        fields["payload"] = payload
    types = {"token", "head", "message", "client_name", "group", "batches", "payload"}
    return message(**{k: v if k in types else int(v) for k, v in fields.items()})


def trace_of(vector):
    trace = vector["trace"]
    return trace and bytes.fromhex(trace["trace_id"] + trace["span_id"]) + bytes([trace["trace_flags"]])


def decode_stream(data, limit=VECTORS["max_frame_bytes"]):
    frames = wire.FrameSplitter(limit).feed(data)
    return [(frame, wire.decode(frame)) for frame in frames]


@pytest.mark.parametrize("vector", VECTORS["frames"], ids=names(VECTORS["frames"]))
def test_encodes_and_decodes_byte_for_byte(vector):
    data = bytes.fromhex(vector["frame_hex"])
    message = message_of(vector)
    assert wire.encode(message, vector["channel"], trace_of(vector)) == data
    ((frame, decoded),) = decode_stream(data)
    assert decoded == message
    assert (frame.kind, frame.channel, frame.trace) == (vector["kind"], vector["channel"], trace_of(vector))
    if isinstance(message, wire.Append):
        assert [e.hex() for e in wire.split_entries(message.payload, message.entry_count)] == vector["entries_hex"][0]
        head = wire.encode_append(vector["channel"], *message[:-1], trace_of(vector))
        assert head + message.payload == data


@pytest.mark.parametrize("vector", VECTORS["decode_only"], ids=names(VECTORS["decode_only"]))
def test_ignores_what_later_versions_add(vector):
    ((frame, decoded),) = decode_stream(bytes.fromhex(vector["frame_hex"]))
    assert decoded == message_of(vector)
    assert frame.trace == trace_of(vector)


def decode_entries_too(data):
    for _, message in decode_stream(data):
        if isinstance(message, wire.Append):
            wire.split_entries(message.payload, message.entry_count)
        if isinstance(message, wire.Entries):
            at = 0
            for batch in message.batches:
                wire.split_entries(message.payload, batch.entry_count, at, at + batch.payload_len)
                at += batch.payload_len


@pytest.mark.parametrize("vector", VECTORS["invalid"], ids=names(VECTORS["invalid"]))
def test_rejects_what_is_broken(vector):
    with pytest.raises(wire.WireError) as caught:
        decode_entries_too(bytes.fromhex(vector["frame_hex"]))
    assert caught.value.code == vector["error_code"]


def test_splits_a_stream_wherever_it_is_cut():
    stream = b"".join(bytes.fromhex(vector["frame_hex"]) for vector in VECTORS["frames"])
    whole = wire.FrameSplitter(VECTORS["max_frame_bytes"]).feed(stream)
    assert len(whole) == len(VECTORS["frames"])
    random_source = random.Random(7)
    for chunk_max in (1, 2, 17, 40, 1_000):
        splitter, frames, at = wire.FrameSplitter(VECTORS["max_frame_bytes"]), [], 0
        while at < len(stream):
            size = random_source.randint(1, chunk_max)
            frames += splitter.feed(stream[at : at + size])
            at += size
        assert frames == whole


def test_a_truncated_frame_is_no_frame_yet():
    data = bytes.fromhex(VECTORS["frames"][0]["frame_hex"])
    assert wire.FrameSplitter(1_000).feed(data[:-1]) == []


def test_random_damage_never_raises_anything_but_wire_error():
    random_source = random.Random(11)
    stream = [bytes.fromhex(vector["frame_hex"]) for vector in VECTORS["frames"]]
    rejected = 0
    for _ in range(3_000):
        data = bytearray(random_source.choice(stream))
        data[random_source.randrange(len(data))] ^= 1 << random_source.randrange(8)
        try:
            decode_entries_too(bytes(data))
        except wire.WireError as problem:
            assert isinstance(problem.code, Code)
            rejected += 1
    assert rejected > 2_000


@pytest.mark.parametrize("script", ["generate.py", "vectors/generate.py"])
def test_generated_files_are_fresh(script):
    done = subprocess.run([sys.executable, CONTRACT / script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
