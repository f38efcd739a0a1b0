"""Flipped bits on a server's disk: every entry is read back as it was written, and the log reports the repairs."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quorate import wire
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from wire_client import CHANNEL, WireClient

ENTRY_BYTES = 512 * 1024
ENTRIES = 110  # 55 MB: two full segments, and some in the third
SEGMENT_BYTES = 20 << 20
COPIED_BYTES = 2 * SEGMENT_BYTES - (2 << 20)
WAIT_S = 90.0
KIND_BATCH = 1
RECORD_HEAD_BYTES = 32  # in front of a record's body, in the journal as in a group's log


def entry(number: int) -> bytes:
    return random.Random(number).randbytes(ENTRY_BYTES)


@dataclass
class Filled:
    """A stack with a persistent group on its three servers; most of its entries are on disk only."""

    stack: Stack
    customer: Customer
    group: str

    def handle(self) -> dict[str, Any]:
        return self.customer.get(f"/v1/groups/{self.group}/handle")

    def server_of(self, role: str) -> str:
        address = next(e["address"] for e in self.handle()["endpoints"] if e["role"] == role)
        return self.stack.servers_by_address()[address]

    def log_files(self, server: str) -> list[Path]:
        return sorted((self.stack.layout.server(server) / "groups" / self.group).glob("0*"))

    def said(self, server: str, words: str) -> int:
        return self.stack.layout.log(server).read_text(errors="replace").count(words)


@pytest.fixture
def filled(own_state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Filled]:
    monkeypatch.setenv("QUORATE_JOURNAL_SEGMENT_BYTES", str(SEGMENT_BYTES))
    monkeypatch.setenv("QUORATE_JOURNAL_KEEP_SEGMENTS", "0")
    sla = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": ENTRY_BYTES, "rate_per_s": 100}
    with (
        Stack(StackOptions.from_environment(state=own_state, servers=3)) as stack,
        Customer(stack.api_url, "repairs") as customer,
    ):
        group = customer.create_group("flipped", sla)
        filled = Filled(stack, customer, group["id"])
        handle = filled.handle()
        with WireClient(handle, timeout_s=WAIT_S) as client:
            floor = client.attach(handle["group_id"], handle["token"]).last_index
            for number in range(ENTRIES):
                answer = client.append(number + 1, [entry(number)], floor_index=floor, timeout_ms=30_000)
                assert isinstance(answer, wire.Acked), answer
        for server in stack.options.server_names():
            wait_for(
                f"{server} to copy its journal",
                lambda server=server: sum(f.stat().st_size for f in filled.log_files(server)) >= COPIED_BYTES,
            )
        yield filled


def test_bits_flipped_under_a_running_server_are_repaired_when_read(filled: Filled) -> None:
    head = filled.server_of("head")
    # The newest 16 MiB are read from memory.
    before = {path: path.read_bytes() for path in filled.log_files(head)[:2]}
    flipped = sum(flip(path, b"QGR1", every=4) for path in before)
    assert flipped > 10
    assert read_all(filled, head) == ENTRIES
    wait_for("all records to be written back", lambda: all(p.read_bytes() == b for p, b in before.items()))
    assert filled.said(head, "a damaged record was repaired") >= flipped


def test_bits_flipped_on_a_stopped_server_are_repaired(filled: Filled) -> None:
    tail = filled.server_of("tail")
    address = next(a for a, name in filled.stack.servers_by_address().items() if name == tail)
    filled.stack.kill_server(tail)
    wait_for("the chain to go on without it", lambda: address not in addresses_of(filled))
    files = filled.log_files(tail)
    assert flip(files[0], b"QGR1", every=3) > 1
    assert flip(files[1], b"QGR1", every=1_000, in_header=True) == 1
    segments = (filled.stack.layout.server(tail) / "journal").glob("segment-*")
    assert flip(max(s for s in segments if b"QJR1" in s.read_bytes()[: 1 << 20]), b"QJR1", every=5) > 1
    filled.stack.restart_server(tail)
    wait_for("it to be in the chain again", lambda: address in addresses_of(filled))
    assert filled.said(tail, "records of the group are missing") == 1
    assert read_all(filled, tail) == ENTRIES
    assert filled.said(tail, "a damaged record was repaired") >= 1
    filled.stack.restart_server(tail)
    wait_for("it to be back", lambda: address in addresses_of(filled))
    assert read_all(filled, tail) == ENTRIES
    assert filled.stack.dead() == []


def addresses_of(filled: Filled) -> list[str]:
    return [e["address"] for e in filled.handle()["endpoints"] if e["role"] in ("head", "follower", "tail")]


def flip(path: Path, magic: bytes, every: int, in_header: bool = False) -> int:
    """Change one byte of the first and then each `every`th batch record of the file, in place; their number."""
    data = path.read_bytes()
    flips = []
    at = data.find(magic)
    while at >= 0:
        start = at - 4
        body_bytes = struct.unpack_from("<I", data, start + 16)[0]
        head_bytes, kind = struct.unpack_from("<HB", data, start + 28)
        if kind == KIND_BATCH and head_bytes == 96 and body_bytes > ENTRY_BYTES:
            flips.append(start + (9 if in_header else RECORD_HEAD_BYTES + head_bytes + 5_000))
        at = data.find(magic, at + 1)
    with path.open("r+b") as file:
        for position in flips[::every]:
            file.seek(position)
            file.write(bytes([data[position] ^ 0x10]))
    return len(flips[::every])


def read_all(filled: Filled, server: str) -> int:
    """The number of entries that the server gives, each compared with the written one."""
    handle = filled.handle()
    address = next(a for a, name in filled.stack.servers_by_address().items() if name == server)
    offset = 0
    deadline = time.monotonic() + WAIT_S
    with WireClient(handle, timeout_s=WAIT_S, address=address) as client:
        client.attach(handle["group_id"], handle["token"], session=0)
        while offset < ENTRIES and time.monotonic() < deadline:
            client.send(wire.encode(wire.Read(2, 4 << 20, 16, 1000, offset), CHANNEL))
            entries = client.expect(wire.Entries)
            at = 0
            for batch in entries.batches:
                payload = entries.payload[at : at + batch.payload_len]
                at += batch.payload_len
                for found in wire.split_entries(payload, batch.entry_count):
                    assert found == entry(offset), f"entry {offset} is not what was written"
                    offset += 1
    return offset


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited in vain for {what}")
        time.sleep(0.1)
