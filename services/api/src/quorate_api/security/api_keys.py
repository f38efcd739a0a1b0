"""API keys: `qk_` + 32 random characters (190 bits) + 6 of checksum, all base 62.

The checksum is the CRC-32 of the characters before it. With it leak scanners recognise keys, and SDKs report a typing
error without a request. The database stores only an HMAC.
"""

import secrets
import zlib

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PREFIX = "qk_"
RANDOM_LENGTH = 32
CHECKSUM_LENGTH = 6
SHOWN_LENGTH = len(PREFIX) + 6  # characters of a key that lists show


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
