"""One secret, a key for each purpose (HKDF), so that no key reveals another."""

import hashlib
import hmac
from dataclasses import dataclass

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


@dataclass(frozen=True, slots=True)
class Keys:
    secret: bytes

    def mac(self, purpose: str, *parts: bytes) -> bytes:
        """HMAC-SHA256 over the parts. Each has its length in front, so that different parts never look equal."""
        code = hmac.new(self._derive(purpose), digestmod=hashlib.sha256)
        for part in parts:
            code.update(len(part).to_bytes(8, "big") + part)
        return code.digest()

    def seal(self, purpose: str, context: bytes, plaintext: bytes) -> bytes:
        """Encrypt under a key derived from `context`, which only the caller knows. Each context seals one value."""
        nonce = self.mac(f"{purpose} nonce", context, plaintext)[:12]
        return nonce + AESGCM(self.mac(f"{purpose} key", context)).encrypt(nonce, plaintext, None)

    def open(self, purpose: str, context: bytes, sealed: bytes) -> bytes:
        return AESGCM(self.mac(f"{purpose} key", context)).decrypt(sealed[:12], sealed[12:], None)

    def _derive(self, purpose: str) -> bytes:
        return HKDF(hashes.SHA256(), 32, None, f"quorate {purpose}".encode()).derive(self.secret)


def same(left: bytes, right: bytes) -> bool:
    return hmac.compare_digest(left, right)
