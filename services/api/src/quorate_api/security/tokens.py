"""Tokens for the data plane: Ed25519 JWTs (sdk/contract/handle.md)."""

import base64
import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from quorate_api import limits
from quorate_api.settings import ConfigurationError


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    expires_at: datetime


class TokenSigner:
    def __init__(self, pem: str) -> None:
        try:
            key = serialization.load_pem_private_key(pem.encode(), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ConfigurationError("QUORATE_TOKEN_SIGNING_KEY_FILE holds no unencrypted PEM PKCS#8 key.") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise ConfigurationError("QUORATE_TOKEN_SIGNING_KEY_FILE must hold an Ed25519 key.")
        self._key = key
        self.key_id = str(public_jwk(key.public_key())["kid"])

    def sign(
        self,
        subject: str,
        group_id: UUID,
        operations: list[str],
        now: datetime,
        *,
        until: datetime | None = None,
        credential_id: UUID | None = None,
        project_id: UUID | None = None,
        layout: int = 0,
    ) -> Token:
        """Issue a token that ends at `until`, or in an hour. Servers refuse it once `credential_id` is revoked.

        `project_id`: the group's project. Servers divide their time between projects. `layout`: by which the client
        finds keys' partitions; 0: the group has none.
        """
        issued = now.astimezone(UTC).replace(microsecond=0)
        expires = issued + timedelta(seconds=limits.TOKEN_LIFETIME_S)
        if until is not None:
            expires = until.astimezone(UTC).replace(microsecond=0)
        claims: dict[str, Any] = {
            "iss": "quorate-api",
            "aud": "quorate-data",
            "sub": subject,
            "iat": int(issued.timestamp()),
            "exp": int(expires.timestamp()),
            "grants": [{"group": str(group_id), "ops": operations}],
        }
        if credential_id is not None:
            claims["cid"] = str(credential_id)
        if layout > 0:
            claims["grants"][0]["layout"] = layout
        if project_id is not None:
            claims["project"] = str(project_id)
        return Token(jwt.encode(claims, self._key, algorithm="EdDSA", headers={"kid": self.key_id}), expires)


def public_jwk(key: Ed25519PublicKey) -> dict[str, Any]:
    """RFC 8037, with the RFC 7638 thumbprint as its id."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    members = {"crv": "Ed25519", "kty": "OKP", "x": _base64url(raw)}
    thumbprint = hashlib.sha256(json.dumps(members, separators=(",", ":"), sort_keys=True).encode()).digest()
    return {**members, "kid": _base64url(thumbprint), "alg": "EdDSA", "use": "sig"}


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
