"""Events of the audit log, and the chain of their hashes. No I/O.

An event is a CloudEvent (1.0) as JSON text. Its hash is that of the event before it together with this text, so that no
event can be changed, left out or moved without all hashes behind it.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

BEGIN = bytes(32)  # before the first event
TYPE = "quorate."
REDACTED = "…"
# Values that open something. They are in no event.
SECRETS = frozenset({"password", "new_password", "token", "code", "secret", "credential", "passkey", "second_factor"})


@dataclass(frozen=True, slots=True)
class Linked:
    """An event with its place in the chain."""

    seq: int
    event: str
    hash: bytes


class ChainBroken(ValueError):
    """The text says where."""


def text_of(event: Any) -> str:
    return json.dumps(event, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def hash_of(before: bytes, event: str) -> bytes:
    return hashlib.sha256(before + event.encode()).digest()


def exported(seq: int, digest: bytes, event: str) -> str:
    """A line of an export."""
    return json.dumps({"seq": seq, "hash": digest.hex(), "event": event}, ensure_ascii=False) + "\n"


def redacted(value: Any) -> Any:
    """The same without secrets."""
    if isinstance(value, dict):
        return {name: REDACTED if name in SECRETS and each else redacted(each) for name, each in value.items()}
    if isinstance(value, list):
        return [redacted(each) for each in value]
    return value


def check(events: Iterable[Linked], before: tuple[int, bytes] = (0, BEGIN)) -> tuple[int, bytes]:
    """The number and hash of the last event. `before`: those of the event before the first. Raises `ChainBroken`."""
    seq, digest = before
    for each in events:
        if each.seq != seq + 1:
            raise ChainBroken(f"event {seq + 1} is missing: {each.seq} follows {seq}")
        digest = hash_of(digest, each.event)
        if digest != each.hash:
            raise ChainBroken(f"event {each.seq} was changed, or one before it")
        seq = each.seq
    return seq, digest


def read_export(lines: Iterable[str]) -> Iterable[Linked]:
    """Lines of an export. Raises `ChainBroken` for a line that is none."""
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line)
            yield Linked(int(found["seq"]), str(found["event"]), bytes.fromhex(found["hash"]))
        except (ValueError, KeyError, TypeError):
            raise ChainBroken(f"line {number} is no line of an export") from None
