"""Seeds of the fuzzers: the shared golden frames, and one sound input for each thing that a target knows.

The first byte of an input chooses what a target does with the rest (`services/verify/fuzz/fuzz_targets/`).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

from quorate_local.options import REPOSITORY

VECTORS = REPOSITORY / "sdk" / "contract" / "vectors" / "wire.json"
GROUP = "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f"
RAW, SOUND = 0, 1


def write(target: str, folder: Path) -> None:
    """One file for each seed of the target; there are always some."""
    seeds = list(_SEEDS[target]())
    assert seeds, target
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number:03}").write_bytes(seed)


def _client_frames() -> Iterator[bytes]:
    vectors = json.loads(VECTORS.read_text())
    for kind in ("frames", "decode_only", "invalid"):
        for vector in vectors[kind]:
            frame = bytes.fromhex(vector["frame_hex"])
            if len(frame) > 4096:
                continue
            yield bytes([RAW]) + frame
            if len(frame) >= 16:
                head_len = struct.unpack_from("<H", frame, 6)[0]
                yield bytes([SOUND, frame[4], 1]) + struct.pack("<H", head_len) + frame[16:]


def _peer_frames() -> Iterator[bytes]:
    fence = bytes(range(16)) + struct.pack("<Q", 3)
    heads = {
        64: b"QRT1" + struct.pack("<HHI", 1, 0, 7) + b"\x04abcd" + struct.pack("<H", 5) + b"token",
        65: struct.pack("<I", 7) + b"\x04abcd",
        67: fence + struct.pack("<QB", 9, 1),
        68: fence + struct.pack("<QQB", 8, 9, 0),
        69: fence + struct.pack("<IQQI", 5, 9, 8, 2) + struct.pack("<QQQQ", 1, 1, 3, 6),
        70: fence + struct.pack("<IQQQQBI", 5, 6, 9, 8, 7, 0, 0),
        71: fence + struct.pack("<QB", 9, 1),
        72: b"",
    }
    for kind, head in heads.items():
        yield bytes([SOUND, kind]) + struct.pack("<H", len(head)) + head
    payload = struct.pack("<I", 5) + b"hello"
    header = struct.pack("<IIII", 0, len(payload), 0, 1) + bytes(range(16))
    header += struct.pack("<QQQQQQQQ", 3, 9, 100, 4096, 77, 4, 1_700_000_000_000_000, 0)
    yield bytes([2]) + header + struct.pack("<QQQQ", 1, 3, 8, 9) + bytes([0, 0]) + payload
    yield bytes([3, 5]) + struct.pack("<QQQQ", 6 << 8, 9 << 8, 8 << 8, 7 << 8) + b"a base"


def _journal_scan() -> Iterator[bytes]:
    yield bytes([0, 1, 0, 0, 64, 0]) + bytes(64)
    yield bytes([1, 1, 1]) + struct.pack("<Q", 1) + bytes([2, 9]) + struct.pack("<QB", 1, 1) + bytes(24)
    record = bytes([3, 7]) + struct.pack("<H", 100) + b"\xaa"
    segment = bytes([4]) + b"".join(record + bytes([mark]) for mark in (0, 1, 2, 0))
    for faults in (
        b"",
        b"\x01\x00\x05\x04",
        b"\x02\x01\x10\x04\x03\x80\x04",
        b"\x03\x02\x00\x04\x00\x00\x00\x41\x02\x00",
    ):
        yield bytes([2, 0, 1]) + segment + segment + faults
        yield bytes([2, 3, 2]) + segment * 3 + faults * 2


def _client_token() -> Iterator[bytes]:
    claims = {"iss": "quorate-api", "aud": "quorate-data", "sub": "user:1", "exp": 1 << 40}
    claims |= {"grants": [{"group": GROUP, "ops": ["append", "read"]}]}
    peer = {"iss": "quorate-coordinator", "aud": "quorate-peer", "sub": "server:7", "exp": 1 << 40}
    for body in (claims, peer, claims | {"exp": 1}, claims | {"aud": ["x", "quorate-data"]}, claims | {"grants": []}):
        text = json.dumps(body).encode()
        yield bytes([1, 0]) + text
        yield bytes([2, 0]) + text
        for algorithm in ("none", "HS256", "EdDSA"):
            header = json.dumps({"alg": algorithm, "kid": "k1"}).encode()
            yield bytes([1, 1, len(header)]) + header + text
    yield bytes([0]) + b"e30.e30.e30"
    yield bytes([3, 20, 0, 1])


def _control_messages() -> Iterator[bytes]:
    group = {"group_id": GROUP, "epoch": 3}
    report = group | {"role": "tail", "state": "degraded", "last_index": 9, "commit_offset": 12}
    held = group | {"durability": "persistent", "last_index": 9}
    capacity = {"cpu": 1.5, "network_bytes_per_s": 1e8, "storage_io_per_s": 1234.5678}
    register: dict[str, object] = {
        "type": "register",
        "join_token": "t",
        "credential": None,
        "name": "s1",
        "address": "127.0.0.1:1",
    }
    register |= {"incarnation": "00ff", "capacity": capacity, "failure_domain": None, "region": "local"}
    register |= {"held": [held], "version": "0.1.0"}
    messages: list[dict[str, object]] = [
        register,
        {"type": "heartbeat", "seq": 1, "groups": [report], "unreachable": [2], "storage_fault": None},
        {"type": "applied"} | group,
        {"type": "dropped", "group_id": GROUP},
        {"type": "learner_caught_up", "learner": 3} | group,
        {"type": "refuse", "code": "name_taken", "message": "another"},
        {"type": "drop"} | group,
        {"type": "heartbeat_ack", "seq": 1},
        {"type": "peer_token", "token": "t"},
        {"type": "welcome", "server_id": 1, "credential": "c", "heartbeat_ms": 250, "lease_ms": 1500}
        | {"client_keys": {"keys": []}, "peer_keys": {"keys": []}, "peer_token": "t"},
        {"type": "configure", "config": _config()},
    ]
    for message in messages:
        text = json.dumps(message).encode()
        yield bytes([SOUND]) + text
        yield bytes([RAW]) + struct.pack(">I", len(text)) + text


def _config() -> dict[str, object]:
    members = [{"server_id": number, "address": f"127.0.0.1:{7000 + number}"} for number in (1, 2, 3)]
    config: dict[str, object] = {"group_id": GROUP, "epoch": 3, "durability": "persistent", "replicas": members[:2]}
    config |= {"learners": members[2:], "min_replicas": 2, "replication_degree": 3, "retention_bytes": 1 << 30}
    cost = {"fixed_milli": [1, 2, 3], "per_byte_milli": [4, 5, 6]}
    budget = {"rate_per_s": 5000, "request_size_bytes": 64, "cost": cost, "tokens_per_s_milli": [7, 8, 9]}
    budget |= {"short_batch": {"entries": 16, "lacking_milli": [1, 2, 0]}}
    return config | {"budget": budget}


def _coordinator_log() -> Iterator[bytes]:
    file = bytes([3]) + b"".join(struct.pack("<H", size) + b'{"commands":[]}'.ljust(size) for size in (15, 40, 300))
    yield bytes([0]) + bytes(16) + b"QREC" + bytes(8)
    for cut in (0, 20, 100, 1000):
        yield bytes([1]) + file + struct.pack("<H", cut)
    for faults in (b"\x00", b"\x01\x00\x05\x00", b"\x01\x03\x08\x00", b"\x02\x00\x02\x00\x00\x06\x00"):
        yield bytes([2]) + file + faults


def _member_log() -> Iterator[bytes]:
    members = [{"id": "1", "address": "a", "votes": True}]
    point = {"term": 1, "position": 1}
    base: dict[str, object] = {"member": "1", "fleet": "f", "vote": {"term": 1}, "point": point, "members": members}
    empty = base | {"fleet": None, "vote": {"term": 0}, "point": {"term": 0, "position": 0}, "members": []}
    writes: list[dict[str, object]] = [
        {"vote": {"term": 2, "given_to": "1"}},
        {"entries": [{"position": 2, "term": 2}, {"position": 3, "term": 2, "commands": [{"at_ms": 1}]}]},
        {"cut_after": 2, "entries": [{"position": 3, "term": 2, "members": members}]},
    ]
    for first in (base | {"state": {}}, empty | {"state": None}):
        for several in ([], *([write] for write in writes), writes):
            records: list[dict[str, object]] = [{"base": first}, {"writes": several}]
            yield b"\n".join(json.dumps(record).encode() for record in records)


def _quorum_messages() -> Iterator[bytes]:
    term, point = struct.pack("<Q", 5), struct.pack("<QQ", 4, 7)
    members = bytes([1]) + struct.pack("<QB", 9, 1) + b"\x01a"
    entries = struct.pack("<QQB", 8, 4, 0) + struct.pack("<QQBI", 9, 5, 1, 2) + b"[]" + struct.pack("<QQB", 10, 5, 2)
    bodies = {
        1: point, 2: b"\x01", 3: point, 4: b"\x00", 5: point + struct.pack("<QQI", 7, 3, 3) + entries + members,
        6: struct.pack("<QQ", 7, 3), 7: point + point + struct.pack("<Q", 3),
        8: point + members + struct.pack("<QQQI", 9, 4, 3, 5) + b"piece", 9: point + struct.pack("<QQ", 4, 3), 10: b"",
        11: b"",
    }  # fmt: skip
    for kind, body in bodies.items():
        yield term + bytes([kind]) + body


_SEEDS = {
    "client_frames": _client_frames,
    "peer_frames": _peer_frames,
    "journal_scan": _journal_scan,
    "client_token": _client_token,
    "control_messages": _control_messages,
    "coordinator_log": _coordinator_log,
    "member_log": _member_log,
    "quorum_messages": _quorum_messages,
}
