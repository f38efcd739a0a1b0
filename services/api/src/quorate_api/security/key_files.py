"""The key files of a deployment: at random on one machine, or derived from a seed, alike wherever it is."""

import json
import os
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from quorate_api.security import staff_tokens
from quorate_api.security.staff_tokens import Staff
from quorate_api.security.tokens import public_jwk

SIGNING_KEY_FILE = "token-signing-key.pem"
PUBLIC_KEYS_FILE = "token-public-keys.json"
SECRET_FILE = "api-secret"  # noqa: S105 - a file's name
STAFF_TOKEN_FILES: dict[Staff, str] = {"operator": "operator-token", "prober": "prober-token"}
# Files of coordinators. Without a seed they are made elsewhere.
ADMIN_TOKEN_FILE = "coordinator-admin-token"  # noqa: S105 - a file's name
FLEET_KEY_FILE = "fleet.key"
FLEET_KEY_PREFIX = "qfk_"
KEY_BYTES = 32
SEED_BYTES_MIN = 32

# Bytes of a file's key: its name and their number.
Source = Callable[[str, int], bytes]


class SeedRefused(ValueError):
    """The seed cannot be used; the message names what is wanted."""


def at_random(_name: str, length: int) -> bytes:
    return secrets.token_bytes(length)


def derived(seed_hex: str) -> Source:
    """Keys that follow from the seed (HKDF with SHA-256): whoever has it has all of them."""
    try:
        seed = bytes.fromhex(seed_hex.strip())
    except ValueError:
        raise SeedRefused("the seed must be hexadecimal digits: `openssl rand -hex 32` makes one") from None
    if len(seed) < SEED_BYTES_MIN:
        raise SeedRefused(
            f"the seed must have at least {2 * SEED_BYTES_MIN} hexadecimal digits: `openssl rand -hex 32`"
        )

    def of(name: str, length: int) -> bytes:
        return HKDF(SHA256(), length, None, f"quorate {name}".encode()).derive(seed)

    return of


def make_keys(directory: Path, seed_hex: str | None = None) -> list[Path]:
    """Create the absent key files, and return their paths. The JWKS has the signing key; in a rotation, others too.

    `seed_hex`: they are derived from it, those of coordinators among them. Raises `SeedRefused`.
    """
    source = at_random if seed_hex is None else derived(seed_hex)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted: dict[str, Callable[[str], str]] = {
        SIGNING_KEY_FILE: lambda name: signing_key(source(name, KEY_BYTES)),
        SECRET_FILE: lambda name: source(name, KEY_BYTES).hex(),
    }
    for staff, file in STAFF_TOKEN_FILES.items():
        wanted[file] = partial(_staff_token, staff, source)
    if seed_hex is not None:
        wanted[ADMIN_TOKEN_FILE] = lambda name: source(name, KEY_BYTES).hex()
        wanted[FLEET_KEY_FILE] = lambda name: FLEET_KEY_PREFIX + source(name, KEY_BYTES).hex()
    made = []
    for name, text in wanted.items():
        path = directory / name
        if not path.exists():
            write(path, text(name).rstrip("\n") + "\n", 0o600)
            made.append(path)
    public = directory / PUBLIC_KEYS_FILE
    own = public_key(directory / SIGNING_KEY_FILE)
    if not public.exists() or own not in json.loads(public.read_text())["keys"]:
        write(public, jwks([own]), 0o644)
        made.append(public)
    return made


def _staff_token(staff: Staff, source: Source, name: str) -> str:
    return staff_tokens.generate(staff, lambda length: source(name, length))


def signing_key(raw: bytes) -> str:
    """An Ed25519 key of these bytes, PEM."""
    pem = Ed25519PrivateKey.from_private_bytes(raw).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem.decode()


def public_key(signing: Path) -> dict[str, Any]:
    """The public half of a key file, as a JWK."""
    key = serialization.load_pem_private_key(signing.read_bytes(), None)
    assert isinstance(key, Ed25519PrivateKey), f"{signing} holds another kind of key"
    return public_jwk(key.public_key())


def jwks(keys: list[dict[str, Any]]) -> str:
    """The file that coordinators read."""
    return json.dumps({"keys": keys}, indent=1) + "\n"


def write(path: Path, text: str, mode: int) -> None:
    """Write the file whole or not at all: a truncated key would be worse than none."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
