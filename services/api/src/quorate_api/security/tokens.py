"""Tokens for the data plane: Ed25519 JWTs (sdk/contract/handle.md), and the key files they need."""

import base64
import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from quorate_api import limits
from quorate_api.security import staff_tokens
from quorate_api.security.staff_tokens import Staff
from quorate_api.settings import ConfigurationError

SIGNING_KEY_FILE = "token-signing-key.pem"
PUBLIC_KEYS_FILE = "token-public-keys.json"
SECRET_FILE = "api-secret"  # noqa: S105 - a file's name
STAFF_TOKEN_FILES: dict[Staff, str] = {"operator": "operator-token", "prober": "prober-token"}


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
        self, subject: str, group_id: UUID, operations: list[str], now: datetime, *, project_id: UUID | None = None
    ) -> Token:
        """`project_id`: the group's project. Servers divide their time between projects."""
        issued = now.astimezone(UTC).replace(microsecond=0)
        expires = issued + timedelta(seconds=limits.TOKEN_LIFETIME_S)
        claims: dict[str, Any] = {
            "iss": "quorate-api",
            "aud": "quorate-data",
            "sub": subject,
            "iat": int(issued.timestamp()),
            "exp": int(expires.timestamp()),
            "grants": [{"group": str(group_id), "ops": operations}],
        }
        if project_id is not None:
            claims["project"] = str(project_id)
        return Token(jwt.encode(claims, self._key, algorithm="EdDSA", headers={"kid": self.key_id}), expires)


def public_jwk(key: Ed25519PublicKey) -> dict[str, Any]:
    """RFC 8037, with the RFC 7638 thumbprint as its id."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    members = {"crv": "Ed25519", "kty": "OKP", "x": _base64url(raw)}
    thumbprint = hashlib.sha256(json.dumps(members, separators=(",", ":"), sort_keys=True).encode()).digest()
    return {**members, "kid": _base64url(thumbprint), "alg": "EdDSA", "use": "sig"}


def make_keys(directory: Path) -> list[Path]:
    """Create the absent key files, and return their paths. The JWKS always matches the signing key."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = []
    signing = directory / SIGNING_KEY_FILE
    if not signing.exists():
        pem = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        _write(signing, pem.decode(), 0o600)
        made.append(signing)
    key = serialization.load_pem_private_key(signing.read_bytes(), None)
    assert isinstance(key, Ed25519PrivateKey), f"{signing} holds another kind of key"
    public = directory / PUBLIC_KEYS_FILE
    jwks = json.dumps({"keys": [public_jwk(key.public_key())]}, indent=1) + "\n"
    if not public.exists() or public.read_text() != jwks:
        _write(public, jwks, 0o644)
        made.append(public)
    secret = directory / SECRET_FILE
    if not secret.exists():
        _write(secret, secrets.token_hex(32) + "\n", 0o600)
        made.append(secret)
    for staff, name in STAFF_TOKEN_FILES.items():
        token = directory / name
        if not token.exists():
            _write(token, staff_tokens.generate(staff) + "\n", 0o600)
            made.append(token)
    return made


def _write(path: Path, text: str, mode: int) -> None:
    """Write the file whole or not at all: a truncated key would be worse than none."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
