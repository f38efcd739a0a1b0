#!/usr/bin/env python3
"""A group of replicas on loopback that speaks the wire protocol and misbehaves on request.

It is a test double for SDKs: one process, one port per replica, one log in memory, sessions as in wire.md.
There is no replication behind it; what it does faithfully is the client's side of the contract. Faults come
from a scenario file (README.md has the vocabulary).

    python3 fake_server.py [--scenario FILE] [--replicas N]

prints one line of JSON on stdout, `{"handle": {...}, "refreshed": {...}}` (the second is what the API would answer
later), then serves until its stdin closes. Exits 1 and says why if a client broke the protocol.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "src"))

from fake_faults import Faults
from fake_group import WINDOW_BATCHES, Group, Replica, handle_of

from quorate import wire

HANDSHAKE_BYTES_MAX = 65_535


class Channel:
    """One client connection to one replica."""

    def __init__(self, replica: Replica, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, faults: Faults):
        self.replica = replica
        self.group = replica.group
        self.reader = reader
        self.writer = writer
        self.faults = faults
        self.session = 0
        self.attached = False
        self.frozen = False
        self.channel = 0
        self.subscriptions: dict[int, list[int]] = {}  # request → [offset, credit]
        self.reads: list[tuple[float, wire.Read]] = []
        self.acks: list[tuple[int, int]] = []
        self.unanswered = 0

    # In.

    async def serve(self) -> None:
        splitter = wire.FrameSplitter(HANDSHAKE_BYTES_MAX)
        self.replica.channels.add(self)
        try:
            while data := await self.reader.read(1 << 18):
                while self.frozen:
                    await asyncio.sleep(0.02)
                if self.faults.trickle_s:
                    await asyncio.sleep(self.faults.trickle_s)
                for frame in splitter.feed(data):
                    if self.writer.is_closing():
                        return
                    await self.on_frame(frame, splitter)
                self.flush_acks()
                await self.writer.drain()
        except wire.WireError as problem:
            self.group.violations.append(str(problem))
            self.send(wire.Goodbye(problem.code, problem.message), channel=0)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.replica.channels.discard(self)
            self.writer.close()

    async def on_frame(self, frame: wire.Frame, splitter: wire.FrameSplitter) -> None:
        message = wire.decode(frame)
        self.channel = frame.channel or self.channel
        fault = self.faults.take(type(message).__name__.lower(), self.replica)
        if fault is not None and await self.faults.apply(fault, self, message):
            return
        match message:
            case wire.Hello():
                if message.version != wire.VERSION:
                    self.goodbye(4, f"version {message.version}")
                    return
                limits = self.group.limits
                self.send(
                    wire.HelloOk(
                        1,
                        self.replica.server_id,
                        limits["max_frame_bytes"],
                        limits["max_entry_bytes"],
                        limits["max_batch_bytes"],
                        limits["max_batch_entries"],
                    ),
                    channel=0,
                )
                splitter.max_frame_bytes = limits["max_frame_bytes"]
            case wire.Attach():
                self.attach(message)
            case wire.Append():
                self.append(message, frame.trace)
            case wire.Read():
                self.reads.append((time.monotonic() + message.wait_ms / 1e3, message))
                self.answer_reads()
            case wire.Subscribe():
                self.subscribe(message)
            case wire.Credit():
                if message.request in self.subscriptions:
                    self.subscriptions[message.request][1] += message.bytes
                    self.feed()
            case wire.Cancel():
                self.subscriptions.pop(message.request, None)
            case wire.Status():
                self.send(self.replica.status(message.request))
            case wire.Ping():
                self.send(wire.Pong(message.nonce), channel=0)
            case wire.Goodbye() | wire.Detach():
                self.writer.close()

    def attach(self, message: wire.Attach) -> None:
        refusal = self.group.check_attach(message)
        if refusal is None and self.replica.cut_off and message.session:
            refusal = 26, 3
        if refusal is not None:
            self.refuse(wire.Kind.ATTACH, 0, *refusal)
            return
        self.session = message.session
        self.attached = True
        self.group.owner[self.session] = self
        self.send(self.replica.attached(message.session))

    def append(self, message: wire.Append, trace: bytes | None) -> None:
        group = self.group
        if self.replica.cut_off:
            self.refuse(wire.Kind.APPEND, message.seq, 26, 3, head="")
            return
        if not self.replica.is_head():
            self.refuse(wire.Kind.APPEND, message.seq, 20, 2)
            return
        if self.session == 0:
            self.refuse(wire.Kind.APPEND, message.seq, 45, 0)
            return
        if group.owner.get(self.session) is not self:
            self.refuse(wire.Kind.APPEND, message.seq, 47, 0)
            return
        self.unanswered += 1
        if self.unanswered > WINDOW_BATCHES:
            group.violations.append(f"{self.unanswered} batches outstanding")
        outcome = group.order(self.session, message, trace)
        if isinstance(outcome, int):
            self.acks.append((message.seq, outcome))
            group.changed()
        else:
            self.unanswered -= 1
            self.refuse(wire.Kind.APPEND, message.seq, *outcome)

    def subscribe(self, message: wire.Subscribe) -> None:
        if message.offset < self.group.trim_offset:
            self.refuse(wire.Kind.SUBSCRIBE, message.request, 50, 0, message=f"trimmed to {self.group.trim_offset}")
            return
        if message.request in self.subscriptions:
            self.goodbye(1, f"request {message.request} is a subscription already")
            return
        self.subscriptions[message.request] = [message.offset, message.credit_bytes]
        self.feed()

    # Out.

    def flush_acks(self) -> None:
        acks, self.acks = self.acks, []
        if not acks:
            return
        delay_s = self.faults.ack_delay_s
        if delay_s:
            asyncio.get_running_loop().call_later(delay_s, self.send_acks, acks)
        else:
            self.send_acks(acks)

    def send_acks(self, acks: list[tuple[int, int]]) -> None:
        self.unanswered -= len(acks)
        for start in range(0, len(acks), 4_093):
            self.send(wire.Acked(acks[start : start + 4_093]))

    def feed(self) -> None:
        """Send what subscriptions have credit for."""
        for request, subscription in self.subscriptions.items():
            while subscription[1] > 0:
                batches = self.group.batches_from(subscription[0], min(subscription[1], 1 << 18), 1_024)
                if not batches:
                    break
                message = self.group.entries(request, batches, subscription[0])
                subscription[0] = message.next_offset
                subscription[1] -= len(message.payload)
                self.send(message)

    def answer_reads(self) -> None:
        now = time.monotonic()
        waiting = []
        for ends_at, read in self.reads:
            if read.offset < self.group.trim_offset:
                self.refuse(wire.Kind.READ, read.request, 50, 0, message=f"trimmed to {self.group.trim_offset}")
                continue
            batches = self.group.batches_from(read.offset, read.max_bytes, read.max_entries)
            if not batches and now < ends_at:
                waiting.append((ends_at, read))
                asyncio.get_running_loop().call_later(ends_at - now + 0.001, self.answer_reads)
                continue
            self.send(self.group.entries(read.request, batches, read.offset))
        self.reads = waiting

    def refuse(
        self,
        op: int,
        number: int,
        code: int,
        retry: int,
        *,
        outcome: int = 1,
        retry_after_ms: int = 0,
        message: str = "",
        head: str | None = None,
    ) -> None:
        head = self.group.head_address() if head is None else head
        self.flush_acks()
        self.send(wire.Refused(op, outcome, retry, code, retry_after_ms, number, head, message))

    def goodbye(self, code: int, message: str) -> None:
        self.send(wire.Goodbye(code, message), channel=0)
        self.writer.close()

    def send(self, message: wire.Message, channel: int | None = None) -> None:
        if not self.writer.is_closing():
            self.writer.write(wire.encode(message, self.channel if channel is None else channel))

    def break_off(self) -> None:
        self.writer.transport.abort()


async def serve(scenario: dict, replicas: int) -> None:
    group = Group(scenario.get("limits", {}), scenario.get("log", {}))
    faults = Faults(scenario.get("faults", []), group)
    for server_id in range(1, scenario.get("replicas", replicas) + 1):
        replica = Replica(group, server_id)

        async def accept(reader, writer, replica=replica):
            channel = Channel(replica, reader, writer, faults)
            if replica.dead:
                channel.break_off()
            else:
                await channel.serve()

        replica.server = await asyncio.start_server(accept, "127.0.0.1", 0)
        replica.address = f"127.0.0.1:{replica.server.sockets[0].getsockname()[1]}"
        group.replicas.append(replica)
    await faults.start()
    answer = {"handle": handle_of(group, scenario), "refreshed": handle_of(group, scenario.get("refresh") or {})}
    print(json.dumps(answer), flush=True)
    # The runner closes our stdin when it is done, or dies.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    problems = group.violations + faults.idle()
    if problems:
        sys.exit("; ".join(problems))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", type=Path)
    parser.add_argument("--replicas", type=int, default=3)
    arguments = parser.parse_args()
    scenario = json.loads(arguments.scenario.read_text()) if arguments.scenario else {}
    asyncio.run(serve(scenario, arguments.replicas))


if __name__ == "__main__":
    main()
