"""The fake's group: one log, its sessions, and the replicas that answer for it."""

from __future__ import annotations

import asyncio
import bisect
import time
import uuid
from typing import NamedTuple

from quorate import wire

WINDOW_BATCHES = 256
LIMITS = {
    "max_frame_bytes": (4 << 20) + 65_535,
    "max_entry_bytes": 1 << 20,
    "max_batch_bytes": 4 << 20,
    "max_batch_entries": 65_536,
}


class Batch(NamedTuple):
    base_offset: int
    timestamp_us: int
    entry_count: int
    payload: bytes
    payload_crc: int


class Group:
    def __init__(self, limits: dict, log: dict) -> None:
        self.group_id = uuid.uuid4()
        self.token = "fake-token-1"
        self.limits = {**LIMITS, **limits}
        self.epoch = 1
        self.head_id = 1
        self.state = wire.State.ACTIVE
        self.replicas: list[Replica] = []
        self.batches: list[Batch] = []
        self.bases: list[int] = []
        self.next_offset = 0
        self.trim_offset = 0
        self.fencing_token = 0
        self.index = 0
        self.sessions: dict[int, dict] = {}  # session → {"next": seq, "offsets": {seq: base_offset}}
        self.owner: dict[int, object] = {}
        self.forgotten_index = 0
        self.traces: list[bytes] = []
        self.violations: list[str] = []
        self.attaches = 0  # with a session
        self.attaches_max: int | None = None
        for entry in log.get("entries", []):
            self._store(wire.pack_entries([entry.encode()]), 1)
        self.trim_offset = log.get("trim_offset", 0)

    def head_address(self) -> str:
        return next((r.address for r in self.replicas if r.server_id == self.head_id and not r.hidden), "")

    def check_attach(self, message: wire.Attach) -> tuple[int, int] | None:
        if message.group != self.group_id:
            return 13, 3
        if message.token != self.token:
            return (11 if message.token.startswith("fake-token") else 10), 3
        if message.session:
            self.attaches += 1
            if self.attaches_max is not None and self.attaches > self.attaches_max:
                self.violations.append(f"{self.attaches} attaches, {self.attaches_max} should have done")
        return None

    def order(self, session: int, message: wire.Append, trace: bytes | None):
        """The batch's base offset, or (code, retry)."""
        state = self.sessions.get(session)
        if state is None:
            if message.floor_index < self.forgotten_index:
                return 44, 0
            state = {"next": 1, "offsets": {}}
        if message.seq < state["next"]:
            offset = state["offsets"].get(message.seq)
            return (44, 0) if offset is None else offset
        if message.seq > state["next"]:
            return 43, 1
        refusal = self._check(message)
        if refusal is not None:
            return refusal
        self.sessions[session] = state
        if trace is not None:
            self.traces.append(trace)
        offset = self._store(message.payload, message.entry_count)
        state["offsets"][message.seq] = offset
        state["offsets"].pop(message.seq - WINDOW_BATCHES, None)
        state["next"] += 1
        return offset

    def _check(self, message: wire.Append) -> tuple[int, int] | None:
        if (
            len(message.payload) > self.limits["max_batch_bytes"]
            or message.entry_count > self.limits["max_batch_entries"]
        ):
            return 41, 0
        try:
            entries = wire.split_entries(message.payload, message.entry_count)
        except wire.WireError:
            return 42, 0
        if max(map(len, entries)) > self.limits["max_entry_bytes"]:
            return 40, 0
        if message.expected_offset not in (wire.NO_EXPECTED_OFFSET, self.next_offset):
            return 60, 0
        if message.fencing_token:
            if message.fencing_token < self.fencing_token:
                return 61, 0
            self.fencing_token = message.fencing_token
        return None

    def _store(self, payload: bytes, entry_count: int) -> int:
        offset = self.next_offset
        self.index += 1
        self.batches.append(Batch(offset, time.time_ns() // 1_000, entry_count, payload, wire.crc32(payload)))
        self.bases.append(offset)
        self.next_offset += entry_count
        return offset

    def changed(self) -> None:
        for replica in self.replicas:
            for channel in replica.channels:
                channel.feed()
                channel.answer_reads()

    def batches_from(self, offset: int, max_bytes: int, max_entries: int) -> list[Batch]:
        """Whole batches from the one that holds `offset`; at least one if there is one."""
        if offset >= self.next_offset:
            return []
        at = bisect.bisect_right(self.bases, offset) - 1
        found: list[Batch] = []
        size = entries = 0
        while at < len(self.batches) and len(found) < 1_024:
            batch = self.batches[at]
            if found and (size + len(batch.payload) > max_bytes or entries >= max_entries):
                break
            found.append(batch)
            size += len(batch.payload)
            entries += batch.entry_count
            at += 1
        return found

    def entries(self, request: int, batches: list[Batch], offset: int) -> wire.Entries:
        heads = [
            wire.EntriesBatch(b.base_offset, b.timestamp_us, b.entry_count, len(b.payload), b.payload_crc)
            for b in batches
        ]
        end = batches[-1].base_offset + batches[-1].entry_count if batches else offset
        payload = b"".join(b.payload for b in batches)
        return wire.Entries(request, end, self.next_offset, self.trim_offset, heads, payload)

    def fail_over(self, lose_sessions: bool = False) -> None:
        """The next living replica is the head, in a new epoch."""
        others = [replica for replica in self.replicas if replica.server_id != self.head_id]
        living = [replica for replica in others if not replica.dead and not replica.cut_off]
        if not living:
            return
        self.head_id = living[0].server_id
        self.epoch += 1
        if lose_sessions:
            self.forget_sessions()
        for replica in living:
            for channel in replica.channels:
                if channel.attached:
                    channel.send(wire.Notice(self.epoch, replica.role(), self.state, 0, self.head_address()))

    def forget_sessions(self) -> None:
        self.forgotten_index = self.index
        self.sessions.clear()


class Replica:
    def __init__(self, group: Group, server_id: int) -> None:
        self.group = group
        self.server_id = server_id
        self.address = ""
        self.server: asyncio.Server | None = None
        self.channels: set = set()
        self.dead = False
        self.hidden = False
        self.cut_off = False
        self.believed_role: int | None = None

    def is_head(self) -> bool:
        return self.role() in (wire.Role.HEAD, wire.Role.SOLE)

    def role(self) -> int:
        if len(self.group.replicas) == 1:
            return wire.Role.SOLE
        return wire.Role.HEAD if self.server_id == self.group.head_id else wire.Role.FOLLOWER

    def attached(self, session: int) -> wire.Attached:
        group = self.group
        next_seq = group.sessions.get(session, {"next": 1})["next"]
        return wire.Attached(
            group.epoch,
            self.role(),
            wire.Durability.PERSISTENT,
            group.state,
            WINDOW_BATCHES,
            group.index,
            next_seq,
            group.next_offset,
            group.trim_offset,
            5_000,
            group.head_address(),
        )

    def status(self, request: int) -> wire.StatusOk:
        group = self.group
        return wire.StatusOk(
            request,
            self.role(),
            group.state,
            group.epoch,
            group.next_offset,
            group.next_offset,
            group.trim_offset,
            group.next_offset,
            group.head_address(),
        )

    def kill(self) -> None:
        """As kill -9: connections are reset, the port refuses."""
        self.dead = True
        if self.server is not None:
            self.server.close()
        for channel in list(self.channels):
            channel.break_off()


def handle_of(group: Group, scenario: dict) -> dict:
    hidden = scenario.get("handle_lacks", [])
    return {
        "group_id": str(group.group_id),
        "name": "fake",
        "epoch": group.epoch,
        "endpoints": [
            {"server_id": r.server_id, "address": r.address, "role": "head" if r.server_id == 1 else "follower"}
            for r in group.replicas
            if r.server_id not in hidden
        ],
        "token": scenario.get("token", group.token),
        "token_expires_at": None,
        "limits": {key: group.limits[key] for key in ("max_entry_bytes", "max_batch_bytes", "max_batch_entries")},
    }
