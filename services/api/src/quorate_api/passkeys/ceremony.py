"""The two ceremonies of WebAuthn (level 3, sections 7.1 and 7.2), by the library `webauthn`. No I/O.

A challenge proves itself by an HMAC, so strangers who ask for one leave nothing behind. The caller notes each answered
one, so that none is answered twice.
"""

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import webauthn
from webauthn.helpers import base64url_to_bytes, parse_client_data_json
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from quorate_api import limits
from quorate_api.security.keys import Keys

NAME = "Quorate"
NONCE_BYTES = 16
TIME_BYTES = 8
MAC_BYTES = 32
# Errors of the library for answers that no browser gives.
_MALFORMED = (WebAuthnException, ValueError, TypeError, KeyError, AttributeError, IndexError)


class AnswerRefused(ValueError):
    """The answer of the authenticator proves nothing."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where passkeys count: a host, and the addresses under which browsers open the portal."""

    host: str
    origins: list[str]

    @classmethod
    def of(cls, origin: str) -> "Place":
        """Passkeys know no network addresses: on this machine they are of `localhost`."""
        parts = urlsplit(origin)
        host = parts.hostname or ""
        try:
            is_address = ip_address(host) is not None
        except ValueError:
            is_address = False
        if not is_address:
            return cls(host, [origin])
        return cls("localhost", [f"{parts.scheme}://localhost" + (f":{parts.port}" if parts.port else "")])


@dataclass(frozen=True, slots=True)
class Challenge:
    """`purpose`: an answer to one is no answer to the other."""

    value: bytes
    expires_at: datetime

    @classmethod
    def make(cls, keys: Keys, purpose: str, now: datetime) -> "Challenge":
        expires_at = now + timedelta(seconds=limits.PASSKEY_CHALLENGE_S)
        body = secrets.token_bytes(NONCE_BYTES) + int(expires_at.timestamp()).to_bytes(TIME_BYTES, "big")
        return cls(body + keys.mac(purpose, body), expires_at)

    @classmethod
    def answered(cls, keys: Keys, purpose: str, credential: dict[str, Any], now: datetime) -> "Challenge":
        """The challenge that is in the answer. Raises `AnswerRefused` if it is not ours, or too old."""
        try:
            client_data = base64url_to_bytes(credential["response"]["clientDataJSON"])
            value = parse_client_data_json(client_data).challenge
        except _MALFORMED:
            raise AnswerRefused("there is no challenge in it") from None
        body, mac = value[: NONCE_BYTES + TIME_BYTES], value[NONCE_BYTES + TIME_BYTES :]
        if len(mac) != MAC_BYTES or not keys.verifies(mac, purpose, body):
            raise AnswerRefused("the challenge is not ours")
        expires_at = datetime.fromtimestamp(int.from_bytes(body[NONCE_BYTES:], "big"), UTC)
        if expires_at <= now:
            raise AnswerRefused("the challenge is too old")
        return cls(value, expires_at)


def creation_options(
    place: Place, challenge: Challenge, user_id: UUID, email: str, known: list[bytes]
) -> dict[str, Any]:
    """For `navigator.credentials.create`. `known`: passkeys that the person has; none is made beside them."""
    options = webauthn.generate_registration_options(
        rp_id=place.host,
        rp_name=NAME,
        user_id=user_id.bytes,
        user_name=email,
        challenge=challenge.value,
        timeout=limits.PASSKEY_CHALLENGE_S * 1_000,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=each) for each in known],
    )
    return dict(json.loads(webauthn.options_to_json(options)))


def request_options(place: Place, challenge: Challenge) -> dict[str, Any]:
    """For `navigator.credentials.get`: any passkey of this place that the person chooses."""
    options = webauthn.generate_authentication_options(
        rp_id=place.host,
        challenge=challenge.value,
        timeout=limits.PASSKEY_CHALLENGE_S * 1_000,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return dict(json.loads(webauthn.options_to_json(options)))


@dataclass(frozen=True, slots=True)
class Made:
    credential_id: bytes
    public_key: bytes
    sign_count: int


def check_creation(place: Place, challenge: Challenge, credential: dict[str, Any]) -> Made:
    """The new passkey. Raises `AnswerRefused`."""
    try:
        found = webauthn.verify_registration_response(
            credential=credential,
            expected_challenge=challenge.value,
            expected_rp_id=place.host,
            expected_origin=place.origins,
            require_user_verification=True,
        )
    except _MALFORMED as error:
        raise AnswerRefused(str(error)) from None
    return Made(found.credential_id, found.credential_public_key, found.sign_count)


def id_of(credential: dict[str, Any]) -> bytes:
    """Which passkey says that it answers. Raises `AnswerRefused`."""
    try:
        return base64url_to_bytes(credential["rawId"])
    except _MALFORMED:
        raise AnswerRefused("it names no passkey") from None


def check_request(
    place: Place, challenge: Challenge, credential: dict[str, Any], public_key: bytes, sign_count: int
) -> int:
    """The passkey's new counter. A counter that went back is that of a copy. Raises `AnswerRefused`."""
    try:
        found = webauthn.verify_authentication_response(
            credential=credential,
            expected_challenge=challenge.value,
            expected_rp_id=place.host,
            expected_origin=place.origins,
            credential_public_key=public_key,
            credential_current_sign_count=sign_count,
            require_user_verification=True,
        )
    except _MALFORMED as error:
        raise AnswerRefused(str(error)) from None
    return found.new_sign_count
