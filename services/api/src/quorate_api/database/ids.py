"""Time-ordered identifiers (UUID version 7, RFC 9562): a list ordered by id is ordered by time."""

import secrets
import time
from uuid import UUID


def new_id() -> UUID:
    milliseconds = time.time_ns() // 1_000_000
    return UUID(
        int=(milliseconds & ((1 << 48) - 1)) << 80
        | 0x7 << 76
        | secrets.randbits(12) << 64
        | 0b10 << 62
        | secrets.randbits(62)
    )
