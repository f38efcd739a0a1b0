"""One attempt to deliver: signed after Standard Webhooks, bounded in time, its end told in words for the customer."""

import asyncio
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx2
from standardwebhooks.webhooks import Webhook

from quorate_api import limits
from quorate_api.webhooks.retries import Answer
from quorate_api.webhooks.transport import AddressForbidden


@dataclass(frozen=True, slots=True)
class Sender:
    client: httpx2.AsyncClient

    @classmethod
    def over(cls, transport: httpx2.AsyncBaseTransport) -> "Sender":
        return cls(httpx2.AsyncClient(transport=transport, timeout=limits.WEBHOOK_TIMEOUT_S, follow_redirects=False))

    async def send(self, url: str, message_id: str, body: str, secrets: Sequence[str]) -> Answer:
        """`secrets`: each that is accepted, newest first. Raises nothing."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(limits.WEBHOOK_TIMEOUT_S):
                http_status, error = await self._post(url, _headers(message_id, body, secrets), body)
        except (AddressForbidden, httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError, ValueError) as failure:
            http_status, error = None, _in_words(failure)
        return Answer(http_status, error, round((time.monotonic() - began) * 1_000))

    async def _post(self, url: str, headers: dict[str, str], body: str) -> tuple[int, str | None]:
        # The answer's body is not read: nobody needs it, and it may have no end.
        async with self.client.stream("POST", url, headers=headers, content=body.encode()) as answer:
            if answer.is_success:
                return answer.status_code, None
            if answer.is_redirect:
                return answer.status_code, "Redirects are not followed: set the final address as the webhook's URL."
            return answer.status_code, f"The receiver answered {answer.status_code}; 2xx means that it has the event."

    async def aclose(self) -> None:
        await self.client.aclose()


def _headers(message_id: str, body: str, secrets: Sequence[str]) -> dict[str, str]:
    now = datetime.now(UTC)
    return {
        "Content-Type": "application/json",
        "User-Agent": "Quorate-Webhooks",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(message_id, now, body) for secret in secrets),
    }


def _in_words(failure: Exception) -> str:
    if isinstance(failure, AddressForbidden):
        return f"Not sent: {failure}."
    if isinstance(failure, TimeoutError | httpx2.TimeoutException):
        return f"No answer within {limits.WEBHOOK_TIMEOUT_S:.0f} s. Answer 2xx first, and work on the event after that."
    cause = failure.__cause__
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"The receiver's certificate is not accepted: {cause.verify_message}."
        cause = cause.__cause__ or cause.__context__
    if isinstance(failure, httpx2.ConnectError):
        return "No connection: the name is not found, or nobody listens there."
    return "The connection broke before the receiver's answer."
