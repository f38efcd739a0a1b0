"""Secrets of webhooks: sealed in the database, for they sign each delivery."""

import base64
import secrets
from uuid import UUID

from quorate_api.security.keys import Keys

PREFIX = "whsec_"
SECRET_BYTES = 32
PURPOSE = "webhook"


def generate() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sealed(keys: Keys, secret_id: UUID, secret: str) -> bytes:
    return keys.seal(PURPOSE, secret_id.bytes, secret.encode())


def opened(keys: Keys, secret_id: UUID, text: bytes) -> str:
    return keys.open(PURPOSE, secret_id.bytes, text).decode()
