"""Statements of the service that somebody else carries: base64url of JSON + `.` + HMAC. They are stored nowhere."""

import base64
import binascii
import json
from typing import Any

from quorate_api.security.keys import Keys

LENGTH_MAX = 400


def issue(keys: Keys, purpose: str, said: dict[str, Any]) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=")
    text = f"{payload.decode()}.{keys.mac(purpose, payload).hex()}"
    assert len(text) <= LENGTH_MAX, "statements are short"
    return text


def read(keys: Keys, purpose: str, text: str) -> dict[str, Any] | None:
    """None: the service has not said it."""
    if len(text) > LENGTH_MAX or not text.isascii():
        return None
    payload, _, mac = text.partition(".")
    if not keys.verifies_hex(mac, purpose, payload.encode()):
        return None
    try:
        said: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError):
        raise AssertionError("a signed payload was written by `issue`") from None
    return said
