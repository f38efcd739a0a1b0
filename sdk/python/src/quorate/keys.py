"""The partition of a key: key hash 1 (sdk/contract/partitions.md). Pure."""

from __future__ import annotations

import hashlib

KEY_HASH = 1
"""The version that this SDK knows."""


def partition_of(key: bytes | str, partitions: int) -> int:
    """The number of the key's partition, from 0 to `partitions` - 1. Text is encoded as UTF-8."""
    if partitions < 1:
        raise ValueError(f"a group has at least one partition, not {partitions}")
    if partitions == 1:
        return 0
    data = key.encode() if isinstance(key, str) else key
    return _jump(int.from_bytes(hashlib.sha256(data).digest()[:8], "big"), partitions)


def _jump(number: int, partitions: int) -> int:
    """Jump consistent hash (Lamping and Veach, 2014): a growth moves keys to new partitions alone."""
    found, following = -1, 0
    while following < partitions:
        found = following
        number = (number * 2_862_933_555_777_941_757 + 1) & 0xFFFF_FFFF_FFFF_FFFF
        following = int((found + 1) * (2_147_483_648.0 / ((number >> 33) + 1)))
    return found
