"""API keys: `qk_` + 32 random characters (190 bits) + 6 of checksum, all base 62.

The checksum (CRC-32 of what is before it) lets leak scanners and SDKs tell a key from noise and a typing error
from a revoked key without asking. Only an HMAC is stored.
"""

import secrets
import zlib

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PREFIX = "qk_"
RANDOM_LENGTH = 32
CHECKSUM_LENGTH = 6
SHOWN_LENGTH = len(PREFIX) + 6  # what lists show of a key


def generate() -> str:
    body = PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return body + _checksum(body)


def well_formed(key: str) -> bool:
    body, checksum = key[:-CHECKSUM_LENGTH], key[-CHECKSUM_LENGTH:]
    return (
        len(key) == len(PREFIX) + RANDOM_LENGTH + CHECKSUM_LENGTH
        and key.startswith(PREFIX)
        and key.isascii()
        and _checksum(body) == checksum
    )


def _checksum(body: str) -> str:
    value, digits = zlib.crc32(body.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        value, digit = divmod(value, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
