"""An authenticator in software: makes passkeys, and answers challenges, as browsers do (WebAuthn, section 6)."""

import hashlib
import json
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


class Authenticator:
    """One passkey. `flags`: what the authenticator says of its user."""

    def __init__(self, origin: str, flags: int = PRESENT | VERIFIED) -> None:
        self.origin = origin
        self.flags = flags
        self.count = 0
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.id = hashlib.sha256(self._point()[0]).digest()
        self._user = b""

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        self._user = base64url_to_bytes(options["user"]["id"])
        x, y = self._point()
        public_key = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})
        credential = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + public_key
        data = self._data(options["rp"]["id"], ATTESTED) + credential
        return self._answer(
            clientDataJSON=self._client_data("webauthn.create", options["challenge"]),
            attestationObject=cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data}),
        )

    def get(self, options: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        data = self._data(options["rpId"])
        client_data = self._client_data("webauthn.get", options["challenge"])
        signed = data + hashlib.sha256(client_data).digest()
        signature = self._key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._answer(
            clientDataJSON=client_data, authenticatorData=data, signature=signature, userHandle=self._user
        )

    def _point(self) -> tuple[bytes, bytes]:
        numbers = self._key.public_key().public_numbers()
        return numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")

    def _data(self, host: str, more: int = 0) -> bytes:
        head = hashlib.sha256(host.encode()).digest() + bytes([self.flags | more])
        return head + self.count.to_bytes(4, "big")

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _answer(self, **response: bytes) -> dict[str, Any]:
        encoded = bytes_to_base64url(self.id)
        shown = {name: bytes_to_base64url(value) for name, value in response.items()}
        return {"id": encoded, "rawId": encoded, "type": "public-key", "response": shown, "clientExtensionResults": {}}
