#!/usr/bin/env python3
"""Writes partitions.json: the partition of a key (partitions.md). It shares no code with the SDKs.

python3 generate_partitions.py           write partitions.json
python3 generate_partitions.py --check   exit 1 if it is not what this script would write
"""

import hashlib
import json
import sys
from pathlib import Path

OUTPUT = Path(__file__).with_name("partitions.json")
COUNTS = (1, 2, 3, 4, 7, 16, 48, 64, 100, 255, 256)
KEYS = [b"", b"a", b"user-42", "Grüße".encode(), "注文".encode(), bytes(range(256)), b"\x00", b"\xff" * 64]
KEYS += [f"order-{number}".encode() for number in range(24)]


def jump(number: int, partitions: int) -> int:
    found, following = -1, 0
    while following < partitions:
        found = following
        number = (number * 2862933555777941757 + 1) % 2**64
        following = int((found + 1) * (float(2**31) / float((number >> 33) + 1)))
    return found


def main() -> int:
    cases = []
    for key in KEYS:
        number = int.from_bytes(hashlib.sha256(key).digest()[:8], "big")
        partitions = {str(count): jump(number, count) for count in COUNTS}
        cases.append({"key_hex": key.hex(), "hash": str(number), "partitions": partitions})
    text = json.dumps({"key_hash": 1, "cases": cases}, indent=1) + "\n"
    if "--check" in sys.argv[1:]:
        return int(not OUTPUT.exists() or OUTPUT.read_text() != text)
    OUTPUT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
