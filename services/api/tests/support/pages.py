"""A provider of hosted pages in memory, as the port describes it, for what stripe-mock cannot do: it keeps no state."""

import json
from dataclasses import dataclass, field
from typing import Literal

from quorate_api.checkout.port import HostedPage, Order, ProviderUnavailable, Receipt
from quorate_api.checkout.stripe_pages import receipt_of


@dataclass
class Session:
    order: Order
    status: Literal["open", "expired", "complete"] = "open"


@dataclass
class FakePages:
    """Repeating an order gives the same page. `away`: the next calls get no answer, after it was done or before."""

    name: Literal["stripe"] = "stripe"
    sessions: dict[str, Session] = field(default_factory=dict)
    away: list[Literal["before", "after"]] = field(default_factory=list)
    opened: list[Order] = field(default_factory=list)

    async def open(self, order: Order) -> HostedPage:
        away = self.away.pop(0) if self.away else None
        if away == "before":
            raise ProviderUnavailable("away")
        session_id = f"cs_{order.key}"
        known = self.sessions.setdefault(session_id, Session(order))
        assert known.order == order, "the same key, another order"
        self.opened.append(order)
        if away == "after":
            raise ProviderUnavailable("away")
        return HostedPage(session_id, f"https://pay.example/{session_id}")

    async def end(self, session_id: str) -> bool:
        if self.away:
            raise ProviderUnavailable(self.away.pop(0))
        session = self.sessions[session_id]
        if session.status == "open":
            session.status = "expired"
        return session.status == "expired"

    def read(self, body: bytes, signature: str) -> Receipt | None:
        return receipt_of(body.decode())

    def pay(self, session_id: str, event_id: str = "evt_1") -> str:
        """The customer pays there. Returns the event that tells of it."""
        session = self.sessions[session_id]
        assert session.status == "open"
        session.status = "complete"
        return paid_event(session.order, event_id)


def paid_event(order: Order, event_id: str, **changes: object) -> str:
    """Stripe's event, cut to the fields that are read and a few more."""
    session = {
        "id": f"cs_{order.key}",
        "object": "checkout.session",
        "payment_status": "paid",
        "payment_intent": f"pi_{order.key}",
        "amount_total": order.cents,
        "currency": order.currency.lower(),
        "metadata": {"quorate_invoice_id": str(order.invoice_id), "quorate_attempt": str(order.attempt)},
        "livemode": False,
    }
    event = {"id": event_id, "object": "event", "type": "checkout.session.completed", "api_version": "2026-10-28"}
    return json.dumps({**event, "data": {"object": session | changes}})
