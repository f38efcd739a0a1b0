"""An attempt to show an identity, sealed in a cookie of the browser that began it.

A stolen address with a provider's code is of no use in another browser. Nor does it make another person's browser log
in to the attacker's account.
"""

import base64
import binascii
import json
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID

from cryptography.exceptions import InvalidTag

from quorate_api import limits
from quorate_api.openid.provider import Asked, Identity
from quorate_api.security.keys import Keys

PURPOSE = "identity attempt"
SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Attempt:
    """`person`: it was begun by somebody who was logged in. `identity`: the provider has answered."""

    provider: str
    asked: Asked
    person: UUID | None
    ends_at: int
    identity: Identity | None = None

    @classmethod
    def begin(cls, provider: str, person: UUID | None) -> Self:
        asked = Asked(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48))
        return cls(provider, asked, person, _now() + limits.IDENTITY_ATTEMPT_S)

    def shown(self, identity: Identity) -> Self:
        return replace(self, identity=identity)

    def sealed(self, keys: Keys) -> str:
        salt = secrets.token_bytes(SALT_BYTES)
        identity = self.identity
        plain: dict[str, Any] = {
            "provider": self.provider,
            "asked": [self.asked.state, self.asked.nonce, self.asked.verifier],
            "person": None if self.person is None else str(self.person),
            "ends_at": self.ends_at,
            "identity": None
            if identity is None
            else [identity.subject, identity.email, identity.email_verified, identity.authenticated_at],
        }
        return base64.urlsafe_b64encode(salt + keys.seal(PURPOSE, salt, json.dumps(plain).encode())).decode()

    @classmethod
    def opened(cls, keys: Keys, sealed: str | None) -> Self | None:
        """None: there is none, it has ended, or it is not of this service."""
        try:
            raw = base64.b64decode(sealed or "", altchars=b"-_", validate=True)
            plain = json.loads(keys.open(PURPOSE, raw[:SALT_BYTES], raw[SALT_BYTES:]))
        except (binascii.Error, InvalidTag, ValueError):
            return None
        attempt = cls(
            plain["provider"],
            Asked(*plain["asked"]),
            None if plain["person"] is None else UUID(plain["person"]),
            plain["ends_at"],
            None if plain["identity"] is None else Identity(*plain["identity"]),
        )
        return attempt if attempt.ends_at > _now() else None


def _now() -> int:
    return int(datetime.now(UTC).timestamp())
