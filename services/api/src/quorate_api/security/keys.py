"""One secret, a key for each purpose (HKDF), so that no key reveals another.

While the secret is exchanged there are two: the present one signs and seals, and the other one verifies and opens, too.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

NONCE_BYTES = 12
MAC_BYTES_MIN = 16  # a shorter one can be guessed
MAC_DIGITS = 64  # in hex


@dataclass(frozen=True, slots=True)
class Keys:
    """`others`: the former secret, or the next one."""

    secret: bytes
    others: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, secrets: Sequence[bytes]) -> Self:
        """The first is the present one."""
        return cls(secrets[0], tuple(secrets[1:]))

    @property
    def id(self) -> str:
        """Tells the present secret from others, and nothing of it."""
        return self.mac("secret id").hex()[:16]

    def mac(self, purpose: str, *parts: bytes) -> bytes:
        """HMAC-SHA256 over the parts. Each has its length in front, so that different parts never look equal."""
        return _mac(self.secret, purpose, parts)

    def macs(self, purpose: str, *parts: bytes) -> list[bytes]:
        """The HMACs under all secrets, the present one first. They find values that were written under any."""
        return [_mac(secret, purpose, parts) for secret in (self.secret, *self.others)]

    def verifies(self, given: bytes, purpose: str, *parts: bytes) -> bool:
        """Whether it is the HMAC under any secret, or its first bytes, at least 16."""
        return len(given) >= MAC_BYTES_MIN and any(
            same(given, each[: len(given)]) for each in self.macs(purpose, *parts)
        )

    def verifies_hex(self, given: str, purpose: str, *parts: bytes, digits: int = MAC_DIGITS) -> bool:
        """Whether it is exactly the first `digits`, at least 32, of the HMAC under any secret, in hex."""
        assert digits >= 2 * MAC_BYTES_MIN, "a shorter one can be guessed"
        return any(same(given.encode(), each.hex()[:digits].encode()) for each in self.macs(purpose, *parts))

    def seal(self, purpose: str, context: bytes, plaintext: bytes) -> bytes:
        """Encrypt under a key derived from `context`, which only the caller knows. Each context seals one value."""
        nonce = self.mac(f"{purpose} nonce", context, plaintext)[:NONCE_BYTES]
        return nonce + AESGCM(self.mac(f"{purpose} key", context)).encrypt(nonce, plaintext, None)

    def open(self, purpose: str, context: bytes, sealed: bytes) -> bytes:
        """Raises `InvalidTag` if no secret has sealed it."""
        keys = self.macs(f"{purpose} key", context)
        for key in keys[:-1]:
            try:
                return _open(key, sealed)
            except InvalidTag:
                continue
        return _open(keys[-1], sealed)

    def resealed(self, purpose: str, context: bytes, sealed: bytes) -> bytes | None:
        """The same under the present secret. None: it is."""
        plaintext = self.open(purpose, context, sealed)
        again = self.seal(purpose, context, plaintext)
        return None if again == sealed else again


def same(left: bytes, right: bytes) -> bool:
    return hmac.compare_digest(left, right)


def _mac(secret: bytes, purpose: str, parts: tuple[bytes, ...]) -> bytes:
    key = HKDF(hashes.SHA256(), 32, None, f"quorate {purpose}".encode()).derive(secret)
    code = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        code.update(len(part).to_bytes(8, "big") + part)
    return code.digest()


def _open(key: bytes, sealed: bytes) -> bytes:
    return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)
