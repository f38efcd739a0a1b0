"""The faults that a scenario asks for, each at one place: the nth message of a kind."""

from __future__ import annotations

import asyncio
import random
import struct

from quorate import wire


class Faults:
    """`faults` is a list of {"on": message, "nth": n, "times": k, "replica": id or null, "do": what, …}."""

    def __init__(self, faults: list[dict], group) -> None:
        self.group = group
        self.trickle_s = 0.0
        self.ack_delay_s = 0.0
        self._waiting = [dict(fault, seen=0) for fault in faults]
        self._random = random.Random(3)

    async def start(self) -> None:
        """Apply what is to hold from the beginning."""
        for fault in [fault for fault in self._waiting if fault["on"] == "start"]:
            self._waiting.remove(fault)
            self.ack_delay_s = fault.get("ack_delay_ms", 0) / 1e3
            self.trickle_s = fault.get("read_delay_ms", 0) / 1e3
            for server_id in fault.get("dead", []):
                self._replica(server_id).kill()
            self.group.head_id = fault.get("head", self.group.head_id)
            self.group.attaches_max = fault.get("attaches_max", self.group.attaches_max)

    def take(self, message: str, replica) -> dict | None:
        """The fault that strikes this message, if one does."""
        struck = None
        for fault in self._waiting:
            if fault["on"] != message or fault.get("replica", replica.server_id) != replica.server_id:
                continue
            fault["seen"] += 1
            first = fault.get("nth", 1)
            if struck is None and first <= fault["seen"] < first + fault.get("times", 1):
                struck = fault
        return struck

    def idle(self) -> list[str]:
        """Faults that never struck: their scenario shows less than it says."""
        return [f"never struck: {fault}" for fault in self._waiting if fault["seen"] < fault.get("nth", 1)]

    async def apply(self, fault: dict, channel, message: wire.Message) -> bool:
        """Do it; whether the message is to be ignored then."""
        return await getattr(self, f"do_{fault['do']}")(fault, channel, message)

    def _replica(self, server_id: int):
        return next(replica for replica in self.group.replicas if replica.server_id == server_id)

    async def do_drop(self, fault, channel, message) -> bool:
        """Break the connection; the message is lost."""
        channel.break_off()
        return True

    async def do_order_then_drop(self, fault, channel, message) -> bool:
        """Order the batch, then break the connection: its acknowledgement is lost."""
        self.group.order(channel.session, message, None)
        self.group.changed()
        channel.break_off()
        return True

    async def do_swallow(self, fault, channel, message) -> bool:
        """Never answer."""
        return True

    async def do_order_and_swallow(self, fault, channel, message) -> bool:
        self.group.order(channel.session, message, None)
        return True

    async def do_refuse(self, fault, channel, message) -> bool:
        kind = wire.Kind[type(message).__name__.upper()]
        number = getattr(message, "seq", getattr(message, "request", 0))
        channel.refuse(
            kind,
            number,
            fault["code"],
            fault["retry"],
            outcome=fault.get("outcome", 1),
            retry_after_ms=fault.get("retry_after_ms", 0),
            message=fault.get("message", ""),
        )
        return True

    async def do_kill_head(self, fault, channel, message) -> bool:
        """Kill the head, perhaps after ordering the batch; another follows it after `elect_ms`."""
        if fault.get("ordered"):
            self.group.order(channel.session, message, None)
        head = self._replica(self.group.head_id)
        head.hidden = fault.get("elect_ms", 0) > 0 and not fault.get("named")
        head.kill()
        asyncio.get_running_loop().call_later(fault.get("elect_ms", 0) / 1e3, self.group.fail_over, False)
        return True

    async def do_cut_off(self, fault, channel, message) -> bool:
        """The head reaches nobody but its clients: it sends them away. Another follows it after `elect_ms`; until then
        the others name this one."""
        if fault.get("ordered"):
            self.group.order(channel.session, message, None)
        self._replica(self.group.head_id).cut_off = True
        asyncio.get_running_loop().call_later(fault.get("elect_ms", 0) / 1e3, self.group.fail_over, False)
        channel.refuse(wire.Kind.APPEND, message.seq, 26, 3, outcome=2, head="")
        return True

    async def do_hand_over(self, fault, channel, message) -> bool:
        """The next replica becomes head though the old one still runs: it says so in a NOTICE, and refuses."""
        self.group.fail_over()
        return False

    async def do_freeze_head(self, fault, channel, message) -> bool:
        """As kill -STOP: connections stay, nothing comes back. Another head is elected."""
        head = self._replica(self.group.head_id)
        for frozen in head.channels:
            frozen.frozen = True
        if head.server is not None:
            head.server.close()
        self.group.fail_over()
        return True

    async def do_forget_sessions(self, fault, channel, message) -> bool:
        self.group.forget_sessions()
        return False

    async def do_expire_token(self, fault, channel, message) -> bool:
        """Only a refreshed handle attaches from now on; the connection ends."""
        self.group.token = "fake-token-2"
        channel.refuse(wire.Kind[type(message).__name__.upper()], getattr(message, "seq", 0), 11, 3)
        return True

    async def do_goodbye(self, fault, channel, message) -> bool:
        channel.goodbye(fault["code"], fault.get("message", ""))
        return True

    async def do_garbage(self, fault, channel, message) -> bool:
        """Bytes that are no frame."""
        channel.writer.write(self._random.randbytes(64))
        return True

    async def do_bad_crc(self, fault, channel, message) -> bool:
        data = bytearray(wire.encode(wire.Acked([(1, 0)]), channel.channel))
        data[-1] ^= 1
        channel.writer.write(bytes(data))
        return True

    async def do_huge_frame(self, fault, channel, message) -> bool:
        channel.writer.write(struct.pack("<IBBHII", 2**31, wire.Kind.ENTRIES, 0, 32, channel.channel, 0))
        return True

    async def do_half_frame(self, fault, channel, message) -> bool:
        """Order the batch, answer with half a frame, and close."""
        if isinstance(message, wire.Append):
            self.group.order(channel.session, message, None)
        channel.writer.write(wire.encode(wire.Acked([(1, 0)]), channel.channel)[:-5])
        channel.writer.close()
        return True

    async def do_bogus_ack(self, fault, channel, message) -> bool:
        """Acknowledge a batch that was never sent."""
        channel.send(wire.Acked([(10_000, 0)]))
        return True

    async def do_ping(self, fault, channel, message) -> bool:
        channel.send(wire.Ping(77), channel=0)
        return False
