#!/usr/bin/env python3
"""Writes wire.json: golden frames of the wire protocol (../wire.md) for every codec's tests.

Deliberately shares no code with any SDK: it packs the bytes straight from the tables of wire.md. So a codec that agrees
with this file agrees with the text and not with another codec.

    python3 generate.py           write wire.json
    python3 generate.py --check   exit 1 if wire.json is not what this script would write
"""

import json
import struct
import sys
import uuid
import zlib
from pathlib import Path

OUTPUT = Path(__file__).with_name("wire.json")
MAX_FRAME_BYTES = 4_259_839  # 4 MiB of payload and the largest head: what the vectors are checked against
U53_MAX = 2**53 - 1
U64_MAX = 2**64 - 1
TRACE = {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7", "trace_flags": 1}
GROUP = "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f"
TOKEN = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJkZW1vIn0.c2lnbmF0dXJl"

KINDS = {
    "HELLO": 1,
    "HELLO_OK": 2,
    "ATTACH": 3,
    "ATTACHED": 4,
    "APPEND": 5,
    "ACKED": 6,
    "REFUSED": 7,
    "READ": 8,
    "ENTRIES": 9,
    "SUBSCRIBE": 10,
    "CREDIT": 11,
    "CANCEL": 12,
    "STATUS": 13,
    "STATUS_OK": 14,
    "PING": 15,
    "PONG": 16,
    "GOODBYE": 17,
    "DETACH": 18,
    "NOTICE": 19,
    "TRIM": 20,
    "TRIM_OK": 21,
}


def text8(value):
    data = value.encode()
    return struct.pack("<B", len(data)) + data


def text16(value):
    data = value.encode()
    return struct.pack("<H", len(data)) + data


def payload_of(entries):
    return b"".join(struct.pack("<I", len(entry)) + entry for entry in entries)


def frame(kind, channel, head, payload=b"", trace=None, **wrong):
    """A frame. `wrong` overrides what the header says, for the invalid ones."""
    flags = wrong.get("flags", 1 if trace else 0)
    if trace:
        head += bytes.fromhex(trace["trace_id"] + trace["span_id"]) + bytes([trace["trace_flags"]])
    first = struct.pack(
        "<IBBHI", wrong.get("len", len(head) + len(payload)), kind, flags, wrong.get("head_len", len(head)), channel
    )
    crc = wrong.get("head_crc", zlib.crc32(first + head))
    return first + struct.pack("<I", crc) + head + payload


def head_hello(version, client_name, magic=b"QRT1", newest=0):
    return magic + struct.pack("<HH", version, newest) + text8(client_name)


def head_attached(f):
    return (
        struct.pack("<QBBBBI", f["epoch"], f["role"], f["durability"], f["state"], 0, f["window_batches"])
        + struct.pack(
            "<QQQQQ", *(f[k] for k in ("last_index", "next_seq", "commit_offset", "trim_offset", "rate_per_s"))
        )
        + text8(f["head"])
    )


def head_append(f, payload_len, payload_crc):
    return struct.pack(
        "<QQIIIIQQ",
        f["seq"],
        f["floor_index"],
        f["timeout_ms"],
        f["entry_count"],
        payload_len,
        payload_crc,
        f["expected_offset"],
        f["fencing_token"],
    )


def head_refused(f):
    return (
        struct.pack("<BBBBHHIQ", f["op"], f["outcome"], f["retry"], 0, f["code"], 0, f["retry_after_ms"], f["id"])
        + text8(f["head"])
        + text16(f["message"])
    )


def head_entries(f):
    out = struct.pack("<IIQQQ", f["request"], len(f["batches"]), f["next_offset"], f["commit_offset"], f["trim_offset"])
    for b in f["batches"]:
        out += struct.pack(
            "<QQIII", b["base_offset"], b["timestamp_us"], b["entry_count"], b["payload_len"], b["payload_crc"]
        )
    return out


def head_status_ok(f):
    return (
        struct.pack("<IBBH", f["request"], f["role"], f["state"], 0)
        + struct.pack(
            "<QQQQQ", *(f[k] for k in ("epoch", "commit_offset", "durable_offset", "trim_offset", "next_offset"))
        )
        + text8(f["head"])
    )


def head_notice(f):
    return struct.pack("<QBBHQ", f["epoch"], f["role"], f["state"], 0, f["rate_per_s"]) + text8(f["head"])


WIDE = {
    "session",
    "epoch",
    "last_index",
    "next_seq",
    "commit_offset",
    "trim_offset",
    "rate_per_s",
    "seq",
    "floor_index",
    "expected_offset",
    "fencing_token",
    "base_offset",
    "id",
    "offset",
    "next_offset",
    "timestamp_us",
    "durable_offset",
    "nonce",
}


def as_json(value, key=None):
    """64-bit fields as decimal strings, since JSON readers may hold numbers as doubles."""
    if isinstance(value, dict):
        return {k: as_json(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [as_json(v) for v in value]
    return str(value) if key in WIDE else value


class Vectors:
    def __init__(self):
        self.frames = []
        self.invalid = []

    def add(self, name, kind_name, channel, fields, head, entries=None, trace=None):
        """`entries`: a list of batches, each a list of entries, for the kinds that carry payload."""
        payload = b"".join(payload_of(batch) for batch in entries or [])
        kind = KINDS[kind_name]
        self.frames.append(
            {
                "name": name,
                "kind": kind,
                "kind_name": kind_name,
                "flags": 1 if trace else 0,
                "channel": channel,
                "fields": as_json(fields),
                "trace": trace,
                "entries_hex": None if entries is None else [[e.hex() for e in batch] for batch in entries],
                "payload_hex": payload.hex(),
                "frame_hex": frame(kind, channel, head, payload, trace).hex(),
            }
        )

    def add_append(self, name, channel, entries, trace=None, **fields):
        f = {
            "seq": 1,
            "floor_index": 0,
            "timeout_ms": 10_000,
            "entry_count": len(entries),
            "expected_offset": U64_MAX,
            "fencing_token": 0,
            **fields,
        }
        payload = payload_of(entries)
        f |= {"payload_len": len(payload), "payload_crc": zlib.crc32(payload)}
        head = head_append(f, f["payload_len"], f["payload_crc"])
        self.add(name, "APPEND", channel, f, head, [entries], trace)

    def add_entries(self, name, channel, batches, trace=None, **fields):
        """`batches`: (base_offset, timestamp_us, [entry, …])."""
        f = {"request": 1, "next_offset": 0, "commit_offset": 0, "trim_offset": 0, **fields, "batches": []}
        for base_offset, timestamp_us, entries in batches:
            payload = payload_of(entries)
            f["batches"].append(
                {
                    "base_offset": base_offset,
                    "timestamp_us": timestamp_us,
                    "entry_count": len(entries),
                    "payload_len": len(payload),
                    "payload_crc": zlib.crc32(payload),
                }
            )
        self.add(name, "ENTRIES", channel, f, head_entries(f), [entries for _, _, entries in batches], trace)

    def add_invalid(self, name, error_code, data):
        self.invalid.append({"name": name, "error_code": error_code, "frame_hex": data.hex()})


def connection_frames(v):
    v.add(
        "hello",
        "HELLO",
        0,
        {"version": 1, "newest_version": 0, "client_name": "quorate-python/0.1.0"},
        head_hello(1, "quorate-python/0.1.0"),
    )
    one = {"version": 2, "newest_version": 0, "client_name": ""}
    v.add("hello, empty name, a later version", "HELLO", 0, one, head_hello(2, ""))
    several = {"version": 1, "newest_version": 3, "client_name": "x"}
    v.add("hello, several versions", "HELLO", 0, several, head_hello(1, "x", newest=3))
    longest = {"version": 1, "newest_version": 0, "client_name": "é" * 32}
    v.add("hello, longest name, not ASCII", "HELLO", 0, longest, head_hello(1, "é" * 32))
    for name, f in (
        (
            "hello_ok",
            {
                "version": 1,
                "server_id": 1,
                "max_frame_bytes": MAX_FRAME_BYTES,
                "max_entry_bytes": 1 << 20,
                "max_batch_bytes": 4 << 20,
                "max_batch_entries": 65_536,
            },
        ),
        (
            "hello_ok, all ones",
            {
                "version": 65_535,
                "server_id": 2**32 - 1,
                "max_frame_bytes": 2**32 - 1,
                "max_entry_bytes": 2**32 - 1,
                "max_batch_bytes": 2**32 - 1,
                "max_batch_entries": 2**32 - 1,
            },
        ),
    ):
        keys = ("server_id", "max_frame_bytes", "max_entry_bytes", "max_batch_bytes", "max_batch_entries")
        v.add(name, "HELLO_OK", 0, f, struct.pack("<HHIIIII", f["version"], 0, *(f[k] for k in keys)))
    for name, nonce in (("ping", 1), ("ping, all ones", U64_MAX)):
        v.add(name, "PING", 0, {"nonce": nonce}, struct.pack("<Q", nonce))
    for name, nonce in (("pong", 1), ("pong, all ones", U64_MAX)):
        v.add(name, "PONG", 0, {"nonce": nonce}, struct.pack("<Q", nonce))
    for name, f in (
        ("goodbye", {"code": 90, "message": "The server is stopping."}),
        ("goodbye, no message, unlisted code", {"code": 65_535, "message": ""}),
    ):
        v.add(name, "GOODBYE", 0, f, struct.pack("<H", f["code"]) + text16(f["message"]))


def channel_frames(v):
    for name, channel, session, token in (
        ("attach", 1, 0x0123456789ABCDEF, TOKEN),
        ("attach, read only, empty token", 2**32 - 1, 0, ""),
        ("attach, largest session", 7, U64_MAX, TOKEN),
    ):
        head = uuid.UUID(GROUP).bytes + struct.pack("<Q", session) + text16(token)
        v.add(name, "ATTACH", channel, {"group": GROUP, "session": session, "token": token}, head)
    for name, f in (
        (
            "attached, head of a persistent group",
            {
                "epoch": 3,
                "role": 1,
                "durability": 2,
                "state": 1,
                "window_batches": 256,
                "last_index": 17,
                "next_seq": 1,
                "commit_offset": 1_000,
                "trim_offset": 10,
                "rate_per_s": 5_000,
                "head": "127.0.0.1:7001",
            },
        ),
        (
            "attached, follower of a degraded in-memory group, head unknown, largest offsets",
            {
                "epoch": U64_MAX,
                "role": 2,
                "durability": 1,
                "state": 2,
                "window_batches": 1,
                "last_index": U53_MAX,
                "next_seq": U53_MAX,
                "commit_offset": U53_MAX,
                "trim_offset": U53_MAX,
                "rate_per_s": 0,
                "head": "",
            },
        ),
    ):
        v.add(name, "ATTACHED", 1, f, head_attached(f))


def group_frames(v):
    v.add("detach", "DETACH", 1, {}, b"")
    v.add("detach, largest channel", "DETACH", 2**32 - 1, {}, b"")
    for name, f in (
        ("notice, a new head", {"epoch": 4, "role": 2, "state": 2, "rate_per_s": 5_000, "head": "127.0.0.1:7002"}),
        ("notice, paused, no head", {"epoch": U53_MAX, "role": 0, "state": 3, "rate_per_s": 0, "head": ""}),
        ("notice, IPv6 head", {"epoch": 5, "role": 5, "state": 1, "rate_per_s": 100_000_000, "head": "[::1]:7003"}),
    ):
        v.add(name, "NOTICE", 1, f, head_notice(f))
    for name, request in (("status", 9), ("status, largest request", 2**32 - 1)):
        v.add(name, "STATUS", 1, {"request": request}, struct.pack("<I", request))
    for name, f in (
        (
            "status_ok",
            {
                "request": 9,
                "role": 3,
                "state": 1,
                "epoch": 3,
                "commit_offset": 1_000,
                "durable_offset": 1_002,
                "trim_offset": 10,
                "next_offset": 1_005,
                "head": "127.0.0.1:7001",
            },
        ),
        (
            "status_ok, lost",
            {
                "request": 0,
                "role": 0,
                "state": 5,
                "epoch": U53_MAX,
                "commit_offset": U53_MAX,
                "durable_offset": U53_MAX,
                "trim_offset": U53_MAX,
                "next_offset": U53_MAX,
                "head": "",
            },
        ),
    ):
        v.add(name, "STATUS_OK", 1, f, head_status_ok(f))


def trim_frames(v):
    for name, request, offset in (("trim", 4, 1_000), ("trim, all there ever was", 2**32 - 1, U53_MAX)):
        fields = {"request": request, "before_offset": offset}
        v.add(name, "TRIM", 1, fields, struct.pack("<IQ", request, offset))
    for name, request, offset in (("trim_ok", 4, 990), ("trim_ok, nothing trimmed", 0, 0)):
        fields = {"request": request, "trim_offset": offset}
        v.add(name, "TRIM_OK", 1, fields, struct.pack("<IQ", request, offset))


def append_frames(v):
    v.add_append("append, one entry", 1, [b"hello"])
    v.add_append("append, one empty entry", 1, [b""], seq=2, timeout_ms=0)
    v.add_append("append, three entries, one empty", 1, [b"a", b"", bytes(range(256))], seq=3, floor_index=17)
    v.add_append("append, with a trace context", 1, [b"traced"], trace=TRACE, seq=4)
    v.add_append(
        "append, only at offset 1000, with a fencing token",
        2**32 - 1,
        [b"x" * 64],
        seq=U53_MAX,
        floor_index=U53_MAX,
        timeout_ms=2**32 - 1,
        expected_offset=1_000,
        fencing_token=U64_MAX,
    )
    v.add_append(
        "append, only to an empty log, traced", 1, [b"first"], trace={**TRACE, "trace_flags": 0}, expected_offset=0
    )


def answer_frames(v):
    for name, acks in (
        ("acked, one", [(1, 0)]),
        ("acked, three, largest offset", [(2, 1), (3, 2), (U53_MAX, U53_MAX)]),
        ("acked, none", []),
    ):
        head = struct.pack("<I", len(acks)) + b"".join(struct.pack("<QQ", *ack) for ack in acks)
        v.add(name, "ACKED", 1, {"acks": [{"seq": s, "base_offset": o} for s, o in acks]}, head)
    for name, channel, f in (
        (
            "refused append, throttled",
            1,
            {
                "op": 5,
                "outcome": 1,
                "retry": 1,
                "code": 30,
                "retry_after_ms": 250,
                "id": 7,
                "head": "",
                "message": "above the reserved rate of 5000/s",
            },
        ),
        (
            "refused append, another head",
            1,
            {
                "op": 5,
                "outcome": 1,
                "retry": 2,
                "code": 20,
                "retry_after_ms": 0,
                "id": 1,
                "head": "127.0.0.1:7002",
                "message": "",
            },
        ),
        (
            "refused attach, token expired",
            3,
            {
                "op": 3,
                "outcome": 1,
                "retry": 3,
                "code": 11,
                "retry_after_ms": 0,
                "id": 0,
                "head": "",
                "message": "expired 12 s ago",
            },
        ),
        (
            "refused append, unknown outcome, unlisted code",
            1,
            {
                "op": 5,
                "outcome": 2,
                "retry": 0,
                "code": 65_535,
                "retry_after_ms": 2**32 - 1,
                "id": U64_MAX,
                "head": "",
                "message": "é",
            },
        ),
    ):
        v.add(name, "REFUSED", channel, f, head_refused(f))


def read_frames(v):
    for name, f in (
        ("read", {"request": 1, "max_bytes": 1 << 20, "max_entries": 1_000, "wait_ms": 0, "offset": 0}),
        (
            "read, largest everything",
            {
                "request": 2**32 - 1,
                "max_bytes": 2**32 - 1,
                "max_entries": 2**32 - 1,
                "wait_ms": 2**32 - 1,
                "offset": U53_MAX,
            },
        ),
    ):
        v.add(name, "READ", 1, f, struct.pack("<IIIIQ", *f.values()))
    v.add_entries("entries, none", 1, [], next_offset=5, commit_offset=5)
    v.add_entries("entries, one batch", 1, [(0, 1_732_112_345_000_000, [b"a", b"bc"])], next_offset=2, commit_offset=2)
    v.add_entries(
        "entries, two batches, one of an empty entry",
        1,
        [(998, 1_732_112_345_000_001, [b""]), (999, U53_MAX, [b"x" * 64, b"y"])],
        request=2**32 - 1,
        next_offset=1_001,
        commit_offset=1_001,
        trim_offset=998,
    )
    v.add_entries(
        "entries, largest offsets",
        1,
        [(U53_MAX - 1, U53_MAX, [b"z"])],
        next_offset=U53_MAX,
        commit_offset=U53_MAX,
        trim_offset=U53_MAX - 1,
    )
    for name, f in (
        ("subscribe", {"request": 3, "credit_bytes": 1 << 20, "offset": 0}),
        ("subscribe, largest offset", {"request": 4, "credit_bytes": 2**32 - 1, "offset": U53_MAX}),
    ):
        v.add(name, "SUBSCRIBE", 1, f, struct.pack("<IIQ", *f.values()))
    for name, f in (
        ("credit", {"request": 3, "bytes": 65_536}),
        ("credit, largest", {"request": 4, "bytes": 2**32 - 1}),
    ):
        v.add(name, "CREDIT", 1, f, struct.pack("<II", *f.values()))
    for name, request in (("cancel", 3), ("cancel, largest request", 2**32 - 1)):
        v.add(name, "CANCEL", 1, {"request": request}, struct.pack("<I", request))


def invalid_headers(v):
    ping = struct.pack("<Q", 1)
    good = frame(15, 0, ping)
    v.add_invalid("length over the limit, only the header arrived", 2, frame(15, 0, ping, len=MAX_FRAME_BYTES + 1)[:16])
    v.add_invalid("length all ones, kind unknown too: length is looked at first", 2, b"\xff" * 16)
    v.add_invalid("kind 0", 1, frame(0, 0, ping))
    v.add_invalid("kind 20", 1, frame(20, 0, ping))
    v.add_invalid("an HTTP request", 2, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    v.add_invalid("head longer than the body", 1, frame(15, 0, ping, head_len=9))
    v.add_invalid("wrong head CRC", 3, frame(15, 0, ping, head_crc=zlib.crc32(good[:12] + ping) ^ 1))
    v.add_invalid("one bit of the head flipped", 3, good[:20] + bytes([good[20] ^ 0x10]) + good[21:])
    v.add_invalid("one bit of the channel flipped", 3, good[:8] + bytes([good[8] ^ 1]) + good[9:])
    v.add_invalid("payload after a kind that has none", 1, frame(15, 0, ping, b"x"))
    v.add_invalid("trace flag but no room for a trace context", 1, frame(15, 0, ping, flags=1))


def invalid_heads(v):
    v.add_invalid("ping with a short head", 1, frame(15, 0, b"\0" * 7))
    v.add_invalid("read with a short head", 1, frame(8, 1, b"\0" * 23))
    v.add_invalid("read whose trace context eats its offset", 1, frame(8, 1, b"\0" * 20, trace=TRACE))
    v.add_invalid("hello with another magic", 1, frame(1, 0, head_hello(1, "x", magic=b"QRT2")))
    v.add_invalid("hello whose versions end before they begin", 1, frame(1, 0, head_hello(3, "x", newest=2)))
    v.add_invalid("hello whose name is longer than the head", 1, frame(1, 0, head_hello(1, "abc")[:-1]))
    v.add_invalid("hello whose name is longer than 64 bytes", 1, frame(1, 0, head_hello(1, "a" * 65)))
    v.add_invalid("hello whose name is not UTF-8", 1, frame(1, 0, b"QRT1" + struct.pack("<HHB", 1, 0, 2) + b"\xff\xfe"))
    v.add_invalid("attach whose token is cut", 1, frame(3, 1, bytes(24) + struct.pack("<H", 5) + b"abcd"))
    v.add_invalid("acked with a count beyond the head", 1, frame(6, 1, struct.pack("<I", 2) + bytes(16)))
    v.add_invalid("acked with the largest count", 1, frame(6, 1, struct.pack("<I", 2**32 - 1) + bytes(16)))
    refused = {"op": 5, "outcome": 1, "retry": 0, "code": 1, "retry_after_ms": 0, "id": 1, "head": "", "message": "ab"}
    v.add_invalid("refused with a cut message", 1, frame(7, 1, head_refused(refused)[:-1]))
    v.add_invalid("entries with a batch count beyond the head", 1, frame(9, 1, struct.pack("<IIQQQ", 1, 1, 0, 0, 0)))


def invalid_payloads(v):
    def append(entries, count=None, payload=None, length=None, crc=None):
        body = payload_of(entries) if payload is None else payload
        f = {
            "seq": 1,
            "floor_index": 0,
            "timeout_ms": 0,
            "entry_count": len(entries) if count is None else count,
            "expected_offset": U64_MAX,
            "fencing_token": 0,
        }
        head = head_append(f, len(body) if length is None else length, zlib.crc32(body) if crc is None else crc)
        return frame(5, 1, head, body)

    v.add_invalid("append whose payload is longer than it says", 1, append([b"ab"], length=5))
    v.add_invalid("append whose payload is shorter than it says", 1, append([b"ab"], length=7))
    v.add_invalid("append with a wrong payload CRC", 3, append([b"ab"], crc=1))
    v.add_invalid("append of no entries", 42, append([]))
    v.add_invalid("append with fewer entries than it says", 42, append([b"ab"], count=2))
    v.add_invalid("append with more entries than it says", 42, append([b"a", b"b"], count=1))
    v.add_invalid("append whose last entry is cut", 42, append([b""], payload=struct.pack("<I", 3) + b"ab"))
    v.add_invalid(
        "append whose payload ends inside a length", 42, append([b""], payload=struct.pack("<I", 0) + b"\0\0")
    )
    v.add_invalid(
        "append whose entry length wraps around", 42, append([b""], payload=struct.pack("<I", 2**32 - 1) + b"ab")
    )

    def entries(payload, count=1, length=None, crc=None):
        batch = {
            "base_offset": 0,
            "timestamp_us": 0,
            "entry_count": count,
            "payload_len": len(payload) if length is None else length,
            "payload_crc": zlib.crc32(payload) if crc is None else crc,
        }
        head = {"request": 1, "next_offset": 1, "commit_offset": 1, "trim_offset": 0, "batches": [batch]}
        return frame(9, 1, head_entries(head), payload)

    v.add_invalid("entries whose payloads do not add up to the frame", 1, entries(payload_of([b"ab"]), length=5))
    v.add_invalid("entries with a wrong payload CRC", 3, entries(payload_of([b"ab"]), crc=1))
    v.add_invalid("entries with a batch of no entries", 42, entries(b"", count=0))
    v.add_invalid("entries whose batch has fewer entries than it says", 42, entries(payload_of([b"ab"]), count=2))


def growth(v):
    """Frames of a later minor version that today's codecs must decode, though they would not encode them."""
    head = struct.pack("<Q", 5) + b"later"
    fields = {"nonce": "5"}
    return [
        {
            "name": "ping with trailing bytes in its head",
            "kind": 15,
            "kind_name": "PING",
            "flags": 0,
            "channel": 0,
            "fields": fields,
            "trace": None,
            "frame_hex": frame(15, 0, head).hex(),
        },
        {
            "name": "ping with trailing bytes and a trace context",
            "kind": 15,
            "kind_name": "PING",
            "flags": 1,
            "channel": 0,
            "fields": fields,
            "trace": TRACE,
            "frame_hex": frame(15, 0, head, trace=TRACE).hex(),
        },
        {
            "name": "ping with flags of a later version",
            "kind": 15,
            "kind_name": "PING",
            "flags": 0xFE,
            "channel": 0,
            "fields": fields,
            "trace": None,
            "frame_hex": frame(15, 0, head, flags=0xFE).hex(),
        },
    ]


def generate():
    v = Vectors()
    for part in (
        connection_frames,
        channel_frames,
        group_frames,
        trim_frames,
        append_frames,
        answer_frames,
        read_frames,
    ):
        part(v)
    for part in (invalid_headers, invalid_heads, invalid_payloads):
        part(v)
    for kind_name in KINDS:
        count = sum(f["kind_name"] == kind_name for f in v.frames)
        assert count >= 2, f"{kind_name} needs two vectors"
    document = {
        "comment": "Generated by generate.py from the text of ../wire.md; do not edit. 64-bit fields are decimal "
        "strings. frames: encode and decode byte for byte. decode_only: from later versions. invalid: must be "
        "rejected with the code.",
        "version": 1,
        "max_frame_bytes": MAX_FRAME_BYTES,
        "frames": v.frames,
        "decode_only": growth(v),
        "invalid": v.invalid,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main():
    text = generate()
    if "--check" in sys.argv[1:]:
        if not OUTPUT.exists() or OUTPUT.read_text(encoding="utf-8") != text:
            sys.exit(f"{OUTPUT.name} is stale: run python3 sdk/contract/vectors/generate.py")
        return
    OUTPUT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
