"""Idempotency-Key: a POST repeated with the same key and body takes effect once and gets the same answer.

The claim is committed before the work begins, so that a second request sees it. The answer is stored in the
transaction of the work, so that both commit or neither. A created group takes the claim's id, because the coordinator
learns of the group before the commit: a repetition after a crash continues with the same group.
"""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from fastapi import Request, Response
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api import limits
from quorate_api.database.ids import new_id
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.errors.catalogue import CATALOGUE, Outcome
from quorate_api.http.repository import IdempotencyRepository
from quorate_api.http.services import Services

HEADER = "idempotency-key"
_KEPT_HEADERS = ("content-type", "set-cookie", "etag", "location")


@dataclass(slots=True)
class Claim:
    """The exclusive right to do the work of one key, until `release` or `store`."""

    services: Services
    record_id: UUID
    context: bytes

    async def store(self, connection: AsyncConnection, response: Response) -> None:
        """Store the answer. Call it within the transaction of the work."""
        headers = [
            [name.decode(), value.decode("latin-1")]
            for name, value in response.raw_headers
            if name.decode().lower() in _KEPT_HEADERS
        ]
        body = base64.b64encode(bytes(response.body)).decode()
        plain = json.dumps({"status": response.status_code, "headers": headers, "body": body}).encode()
        sealed = self.services.keys.seal("idempotency", self.context, plain)
        await IdempotencyRepository(connection).store(self.record_id, sealed)

    async def release(self, code: Code) -> None:
        """End the claim after a failure. Deletes the key if nothing happened; else a repetition may continue."""
        async with self.services.engine.begin() as connection:
            repository = IdempotencyRepository(connection)
            if CATALOGUE[code].outcome is Outcome.REFUSED:
                await repository.forget(self.record_id)
            else:
                await repository.lock_until(self.record_id, datetime.now(UTC))


def key_of(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is None or request.method != "POST":
        return None
    if not 1 <= len(key) <= limits.IDEMPOTENCY_KEY_LENGTH_MAX or not key.isascii() or not key.isprintable():
        message = f"Must be 1 to {limits.IDEMPOTENCY_KEY_LENGTH_MAX} printable ASCII characters."
        errors = [FieldError(field="Idempotency-Key", message=message)]
        raise Problem(Code.VALIDATION_FAILED, "Idempotency-Key is not valid.", errors=errors)
    return key


async def claim(request: Request, services: Services, principal: str, key: str) -> Claim | Response:
    """A claim to run this request, or its stored answer. Raises 409 and 422 problems."""
    fingerprints = services.keys.macs(
        "idempotency fingerprint",
        request.method.encode(),
        request.url.path.encode(),
        request.url.query.encode(),
        await request.body(),
    )
    hmacs = services.keys.macs("idempotency key", key.encode())
    context = f"{principal} {key}".encode()
    now = datetime.now(UTC)
    until = now + timedelta(seconds=limits.IDEMPOTENCY_LOCK_S)
    async with services.engine.begin() as connection:
        repository = IdempotencyRepository(connection)
        # Under another secret, while that is exchanged: it is the same key.
        found = await repository.lock(principal, hmacs[1:]) if hmacs[1:] else None
        record_id = new_id()
        if found is None and await repository.insert(record_id, principal, hmacs[0], fingerprints[0], now, until):
            return Claim(services, record_id, context)
        found = found or await repository.lock(principal, hmacs)
        if found is None:  # another request released it between the two statements
            raise Problem(Code.IDEMPOTENCY_IN_PROGRESS, retry_after_s=1)
        if found.fingerprint not in fingerprints:
            raise Problem(Code.IDEMPOTENCY_KEY_REUSED)
        if found.answer is not None:
            return _replay(json.loads(services.keys.open("idempotency", context, found.answer)))
        if found.locked_until > now:
            raise Problem(Code.IDEMPOTENCY_IN_PROGRESS, retry_after_s=1)
        await repository.lock_until(found.id, until)
        return Claim(services, found.id, context)


def _replay(stored: dict[str, object]) -> Response:
    body = base64.b64decode(str(stored["body"]))
    response = Response(body, int(str(stored["status"])))
    headers = stored["headers"]
    assert isinstance(headers, list)
    for name, value in headers:
        response.raw_headers.append((name.encode(), value.encode("latin-1")))
    response.headers["Idempotency-Replayed"] = "true"
    return response
