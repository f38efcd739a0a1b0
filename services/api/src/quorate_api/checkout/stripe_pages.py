"""Stripe as a provider: its hosted Checkout pages, and its signed events, by its own library.

The library is synchronous without further packages, so its calls run in threads, a few at a time. It repeats a call
once after a lost connection, with the same idempotency key.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import anyio
import anyio.to_thread
import stripe
import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quorate_api import limits
from quorate_api.checkout.port import EventOdd, HostedPage, Order, ProviderUnavailable, Receipt, SignatureWrong

log = structlog.get_logger(__name__)

stripe.enable_telemetry = False  # it would tell Stripe how long its answers took

Answer = TypeVar("Answer")
PAID = "checkout.session.completed"


class Marks(BaseModel):
    """The metadata by which a session is recognised as ours."""

    model_config = ConfigDict(extra="ignore")

    quorate_invoice_id: UUID
    quorate_attempt: Annotated[int, Field(ge=1)]


class PaidSession(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    payment_status: str
    payment_intent: str
    amount_total: Annotated[int, Field(gt=0)]
    currency: str
    metadata: Marks


class StripePages:
    name: Literal["stripe"] = "stripe"

    def __init__(self, key: str, webhook_secret: str, url: str) -> None:
        self._client = stripe.StripeClient(
            key,
            base_addresses={"api": url},
            max_network_retries=limits.STRIPE_RETRIES,
            http_client=stripe.RequestsClient(timeout=(limits.STRIPE_CONNECT_S, limits.STRIPE_ANSWER_S)),
        )
        self._webhook_secret = webhook_secret
        self._slots = anyio.CapacityLimiter(limits.STRIPE_CALLS_AT_ONCE)

    async def open(self, order: Order) -> HostedPage:
        session = await self._answer(lambda: self._sessions.create(_asked(order), {"idempotency_key": order.key}))
        if not session.url:
            raise ProviderUnavailable("Stripe made a session without a page")
        return HostedPage(session.id, session.url)

    async def end(self, session_id: str) -> bool:
        """Stripe refuses to end a page that is paid or has ended by itself, so it is asked which of the two it is."""
        try:
            await self._call(lambda: self._sessions.expire(session_id))
        except stripe.InvalidRequestError:
            session = await self._answer(lambda: self._sessions.retrieve(session_id))
            return bool(session.status == "expired")
        return True

    def read(self, body: bytes, signature: str) -> Receipt | None:
        try:
            text = body.decode()
            if not signature.isascii():
                raise SignatureWrong("it is no signature")
            stripe.WebhookSignature.verify_header(
                text, signature, self._webhook_secret, tolerance=limits.STRIPE_EVENT_AGE_S_MAX
            )
        except (stripe.SignatureVerificationError, UnicodeDecodeError) as error:
            raise SignatureWrong(str(error)) from None
        return receipt_of(text)

    @property
    def _sessions(self) -> Any:
        return self._client.v1.checkout.sessions

    async def _answer(self, ask: Callable[[], Answer]) -> Answer:
        """For calls that Stripe refuses only if this program, or its account, is wrong."""
        try:
            return await self._call(ask)
        except stripe.InvalidRequestError as error:
            log.error("Stripe refused a call", error=error.user_message, request_id=error.request_id)
            raise ProviderUnavailable("Stripe refused the call") from error

    async def _call(self, ask: Callable[[], Answer]) -> Answer:
        try:
            return await anyio.to_thread.run_sync(ask, limiter=self._slots)
        except stripe.InvalidRequestError:
            raise
        except stripe.StripeError as error:
            log.warning("Stripe gave no usable answer", error=type(error).__name__, request_id=error.request_id)
            raise ProviderUnavailable(type(error).__name__) from error


class _Event(BaseModel):
    model_config = ConfigDict(extra="ignore")

    class Data(BaseModel):
        object: dict[str, Any]

    id: Annotated[str, Field(min_length=1, max_length=limits.PAYMENT_REFERENCE_LENGTH_MAX)]
    type: str
    data: Data


def receipt_of(text: str) -> Receipt | None:
    """The payment that a verified event tells of. Sessions without our marks are of others with the same account."""
    try:
        event = _Event.model_validate_json(text)
    except ValidationError:
        return None
    found = event.data.object
    if event.type != PAID or found.get("payment_status") != "paid" or "quorate_invoice_id" not in _marks(found):
        return None
    try:
        session = PaidSession.model_validate(found)
    except ValidationError as error:
        raise EventOdd(f"{event.id}: {error.errors()[0]['loc']}") from error
    return Receipt(
        event_id=event.id,
        event_type=event.type,
        invoice_id=session.metadata.quorate_invoice_id,
        attempt=session.metadata.quorate_attempt,
        reference=session.payment_intent,
        cents=session.amount_total,
        currency=session.currency.upper(),
    )


def _marks(session: dict[str, Any]) -> dict[str, Any]:
    marks = session.get("metadata")
    return marks if isinstance(marks, dict) else {}


def _asked(order: Order) -> dict[str, Any]:
    """Cards alone, wallets with them: other ways of paying take days, in which a customer could pay twice."""
    marks = {"quorate_invoice_id": str(order.invoice_id), "quorate_attempt": str(order.attempt)}
    return {
        "mode": "payment",
        "payment_method_types": ["card"],
        "client_reference_id": order.number,
        "line_items": [
            {
                "quantity": 1,
                "price_data": {
                    "currency": order.currency.lower(),
                    "unit_amount": order.cents,
                    "product_data": {"name": f"Invoice {order.number}"},
                },
            }
        ],
        "metadata": marks,
        "payment_intent_data": {"description": f"Invoice {order.number}", "metadata": marks},
        "expires_at": int(order.expires_at.timestamp()),
        "success_url": order.paid_url,
        "cancel_url": order.back_url,
    }
