"""The port to a payment provider: what a provider is asked, and what it answers. No rule here depends on a provider.

`Manual` and `HostedPages` are the two shapes. With the first an operator records what came in. With the second the
customer pays on the provider's page, and the provider tells it in signed events.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

ProviderName = Literal["manual", "stripe"]


@dataclass(frozen=True, slots=True)
class Order:
    """An attempt to pay an invoice on a page. Repeating the same order gives the same page."""

    invoice_id: UUID
    attempt: int
    number: str  # the invoice's, for people
    cents: int
    currency: str
    expires_at: datetime
    paid_url: str  # the customer goes there after paying
    back_url: str  # or there, without paying

    @property
    def key(self) -> str:
        return f"{self.invoice_id}-{self.attempt}"


@dataclass(frozen=True, slots=True)
class HostedPage:
    session_id: str
    url: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """An event of the provider that says: this money came for this invoice. `reference` identifies the money."""

    event_id: str
    event_type: str
    invoice_id: UUID
    attempt: int
    reference: str
    cents: int
    currency: str


class ProviderUnavailable(Exception):
    """No usable answer. The provider may have done what it was asked. No money moves by the calls here."""


class SignatureWrong(Exception):
    """The event is not the provider's, or is too old."""


class EventOdd(Exception):
    """The event is the provider's and tells of a payment, and does not follow its contract."""


@dataclass(frozen=True, slots=True)
class Manual:
    """`instructions`: how to pay, for the customer."""

    instructions: Sequence[str]
    name: Literal["manual"] = "manual"


class HostedPages(Protocol):
    @property
    def name(self) -> Literal["stripe"]: ...

    async def open(self, order: Order) -> HostedPage:
        """The page of this order. Raises `ProviderUnavailable`."""
        ...

    async def end(self, session_id: str) -> bool:
        """End the page. False: somebody has paid there. Raises `ProviderUnavailable`."""
        ...

    def read(self, body: bytes, signature: str) -> Receipt | None:
        """A verified event; None if it tells of no payment. Raises `SignatureWrong`, `EventOdd`."""
        ...


Provider = Manual | HostedPages
