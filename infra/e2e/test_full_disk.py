"""A server with a full disk: its persistent groups become read-only and report it, no acked entry is lost."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate import wire
from quorate.codes import Code
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from wire_client import CHANNEL, WireClient

DISK_BYTES = 256 << 20
ENTRY = bytes(512 * 1024)
APPENDS_MAX = 2 * DISK_BYTES // len(ENTRY)

can_mount = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a disk small enough to fill")


@pytest.fixture
def small_disk_stack(own_state: Path) -> Iterator[Stack]:
    """One server whose data folder is a file system of its own."""
    stack = Stack(StackOptions.from_environment(state=own_state, servers=1))
    stack.layout.create()
    disk = stack.layout.server("s1")
    disk.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)], check=True)
    try:
        with stack:
            yield stack
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@can_mount
def test_a_full_disk_makes_the_group_read_only_and_loses_nothing(small_disk_stack: Stack) -> None:
    sla = {"durability": "persistent", "replication_degree": 1, "request_size_bytes": len(ENTRY), "rate_per_s": 500}
    sla["retention_bytes"] = 8 * DISK_BYTES  # so that nothing is trimmed away
    with Customer(small_disk_stack.api_url, "small-disk") as customer:
        group = customer.create_group("fills-up", sla)
        handle = customer.get(f"/v1/groups/{group['id']}/handle")
        with WireClient(handle) as client:
            floor = client.attach(handle["group_id"], handle["token"]).last_index
            acked = fill(client, floor)
            assert 0 < acked < APPENDS_MAX
            client.send(wire.encode(wire.Status(1), CHANNEL))
            status = client.expect(wire.StatusOk)
            assert status.state == wire.State.READ_ONLY
            assert status.commit_offset >= acked
            assert read_all(client, acked) == acked
    assert small_disk_stack.dead() == []


def fill(client: WireClient, floor: int) -> int:
    """Append until the group reports that it is read-only; the number of acknowledged entries."""
    deadline = time.monotonic() + 60
    seq = 1
    while seq <= APPENDS_MAX and time.monotonic() < deadline:
        answer = client.append(seq, [ENTRY], floor_index=floor)
        if isinstance(answer, wire.Acked):
            seq += 1
            continue
        assert isinstance(answer, wire.Refused), f"expected a refusal, got {answer}"
        if answer.code == Code.READ_ONLY:
            assert answer.message
            return seq - 1
        assert answer.code in (Code.THROTTLED, Code.OVERLOADED, Code.DEADLINE_EXCEEDED), answer
        time.sleep(max(0.01, answer.retry_after_ms / 1000))
    pytest.fail(f"the disk of {DISK_BYTES} bytes took {seq - 1} entries and the group is not read-only")


def read_all(client: WireClient, end: int) -> int:
    """The number of entries below `end` that can be read, whole."""
    offset = found = 0
    while offset < end:
        client.send(wire.encode(wire.Read(2, 4 << 20, 16, 0, offset), CHANNEL))
        entries = client.expect(wire.Entries)
        assert entries.next_offset > offset, "the log ends early"
        at = 0
        for batch in entries.batches:
            payload = entries.payload[at : at + batch.payload_len]
            at += batch.payload_len
            found += sum(entry == ENTRY for entry in wire.split_entries(payload, batch.entry_count))
        offset = entries.next_offset
    return found
