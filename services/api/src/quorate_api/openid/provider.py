"""An identity provider: the authorization code flow of OpenID Connect Core 1.0, section 3.1, with PKCE (RFC 7636)."""

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import jwt
from pydantic import TypeAdapter, ValidationError

from quorate_api import limits
from quorate_api.users.schemas import Email

SCOPE = "openid email"
# Public keys alone: with HS256 the client's secret could sign.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
EMAIL: TypeAdapter[str] = TypeAdapter(Email)
FETCHED = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class ProviderUnavailable(Exception):
    """The provider does not answer as OpenID Connect asks of it. The text is for operators."""


class AnswerRefused(Exception):
    """The provider's answer proves nothing, or it refuses the code. The text is for the person."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A person as the provider knows it. `subject` never changes; the address may."""

    subject: str
    email: str
    email_verified: bool
    authenticated_at: int | None  # seconds since 1970; providers say it where they are asked


@dataclass(frozen=True, slots=True)
class Asked:
    """The secrets of one attempt, of which the provider sees hashes alone until it answers."""

    state: str
    nonce: str
    verifier: str


@dataclass(slots=True)
class _Known:
    """The provider's own description and keys, for an hour."""

    metadata: dict[str, Any]
    keys: jwt.PyJWKSet
    until: float
    keys_at: float


@dataclass(slots=True)
class Provider:
    """`id` is in URLs, `name` is for people. `issuer` is as the provider writes it: some end with a slash."""

    id: str
    name: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    transport: httpx2.AsyncBaseTransport | None = field(default=None, repr=False)
    _known: _Known | None = field(default=None, init=False, repr=False)
    _away_until: float = field(default=0.0, init=False, repr=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    async def url(self, asked: Asked, redirect_uri: str, *, anew: bool) -> str:
        """The address for the person's browser. `anew`: the provider asks the person again who it is."""
        known = await self._look()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(asked.verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": redirect_uri,
            "scope": SCOPE,
            "state": asked.state,
            "nonce": asked.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        } | ({"max_age": "0", "prompt": "login"} if anew else {})
        endpoint = known.metadata["authorization_endpoint"]
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def identity(self, asked: Asked, redirect_uri: str, code: str) -> Identity:
        """The person for whom the provider gave the code. Raises both errors above."""
        known = await self._look()
        answer = await self._exchange(known, asked, redirect_uri, code)
        claims = await self._claims(str(answer.get("id_token", "")), asked)
        subject, authenticated_at = claims["sub"], claims.get("auth_time")
        if not isinstance(subject, str) or not 0 < len(subject) <= limits.SUBJECT_LENGTH_MAX:
            raise AnswerRefused("its name for you is no text of 1 to 255 characters")
        if "email" not in claims:
            claims = await self._user_info(known, str(answer.get("access_token", "")), subject)
        return Identity(
            subject,
            _address(claims.get("email")),
            claims.get("email_verified") is True,
            authenticated_at if isinstance(authenticated_at, int) else None,
        )

    async def _exchange(self, known: _Known, asked: Asked, redirect_uri: str, code: str) -> Mapping[str, Any]:
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": asked.verifier,
        }
        methods = known.metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        headers = {}
        if "client_secret_basic" in methods:
            pair = f"{quote(self.client_id, safe='')}:{quote(self.client_secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            body |= {"client_id": self.client_id, "client_secret": self.client_secret}
        return await self._call("POST", known.metadata["token_endpoint"], data=body, headers=headers)

    async def _claims(self, token: str, asked: Asked) -> dict[str, Any]:
        """The checks of OpenID Connect Core 1.0, section 3.1.3.7."""
        try:
            key = await self._key(jwt.get_unverified_header(token).get("kid"))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self.client_id,
                issuer=self.issuer,
                leeway=limits.PROVIDER_CLOCK_S,
                options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )
        except jwt.PyJWTError as error:
            raise AnswerRefused(f"its token is not valid: {error}") from None
        if claims.get("nonce") != asked.nonce:
            raise AnswerRefused("its token is of another attempt")
        if claims.get("azp", self.client_id) != self.client_id:
            raise AnswerRefused("its token is for another service")
        return claims

    async def _user_info(self, known: _Known, access_token: str, subject: str) -> dict[str, Any]:
        endpoint = known.metadata.get("userinfo_endpoint")
        if not isinstance(endpoint, str):
            return {}
        claims = await self._call("GET", endpoint, headers={"Authorization": f"Bearer {access_token}"})
        if claims.get("sub") != subject:
            raise AnswerRefused("its answers are of two people")
        return claims

    async def _key(self, kid: str | None) -> jwt.PyJWK:
        """Read anew where the key is not known: providers change theirs. At most once in a while."""
        known = await self._look()
        found = _find(known.keys, kid)
        if found is None and time.monotonic() - known.keys_at > limits.PROVIDER_KEYS_S:
            async with self._lock:
                known.keys, known.keys_at = await self._keys(known.metadata), time.monotonic()
            found = _find(known.keys, kid)
        if found is None:
            raise AnswerRefused("its token is signed by an unknown key")
        return found

    async def _look(self) -> _Known:
        async with self._lock:
            if self._known is None or self._known.until < time.monotonic():
                if time.monotonic() < self._away_until:
                    raise ProviderUnavailable(f"{self.name}: it failed a moment ago")
                try:
                    self._known = await self._describe()
                except ProviderUnavailable:
                    self._away_until = time.monotonic() + limits.PROVIDER_AGAIN_S
                    raise
            return self._known

    async def _describe(self) -> _Known:
        # OpenID Connect Discovery 1.0, section 4.1: a slash at the end goes before the path comes.
        metadata = await self._call("GET", f"{self.issuer.removesuffix('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != self.issuer:
            raise ProviderUnavailable(f"{self.name}: its issuer is {metadata.get('issuer')!r}")
        missing = [name for name in FETCHED if not isinstance(metadata.get(name), str)]
        if missing:
            raise ProviderUnavailable(f"{self.name}: its description lacks {', '.join(missing)}")
        now = time.monotonic()
        return _Known(metadata, await self._keys(metadata), now + limits.PROVIDER_KNOWN_S, now)

    async def _keys(self, metadata: Mapping[str, Any]) -> jwt.PyJWKSet:
        try:
            return jwt.PyJWKSet.from_dict(await self._call("GET", metadata["jwks_uri"]))
        except jwt.PyJWTError as error:
            raise ProviderUnavailable(f"{self.name}: its keys cannot be used: {error}") from None

    async def _call(self, method: str, url: str, **given: Any) -> dict[str, Any]:
        """The JSON object that it answers. A 4xx to a POST refuses the code."""
        try:
            async with (
                httpx2.AsyncClient(timeout=limits.PROVIDER_TIMEOUT_S, transport=self.transport) as client,
                client.stream(method, url, **given) as answer,
            ):
                body = b""
                async for chunk in answer.aiter_bytes():
                    body += chunk
                    if len(body) > limits.PROVIDER_ANSWER_BYTES_MAX:
                        raise ProviderUnavailable(f"{self.name}: its answer is too long")
        except httpx2.HTTPError as error:
            raise ProviderUnavailable(f"{self.name}: {error or type(error).__name__}") from None
        if method == "POST" and 400 <= answer.status_code < 500 and answer.status_code != 429:
            raise AnswerRefused("it does not take its own code any more")
        if answer.status_code != 200:
            raise ProviderUnavailable(f"{self.name}: it answers {answer.status_code}")
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ProviderUnavailable(f"{self.name}: its answer is no JSON object")
        return found


def _address(told: object) -> str:
    """As people may give it: it is mailed to."""
    try:
        return EMAIL.validate_python(told)
    except ValidationError:
        raise AnswerRefused("it tells no e-mail address of yours") from None


def _find(keys: jwt.PyJWKSet, kid: str | None) -> jwt.PyJWK | None:
    if kid is None:
        return keys.keys[0] if len(keys.keys) == 1 else None
    return next((key for key in keys.keys if key.key_id == kid), None)
