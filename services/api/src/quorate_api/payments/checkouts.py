"""Pages on which a customer pays an invoice, one at a time for each invoice.

Each attempt is stored before the provider is asked, with everything that is sent to it. So an interrupted request is
finished by the next one with the same idempotency key. A page whose amount is no longer due is ended before another
one is opened. A page that was paid and is not recorded yet stops further ones: nobody pays twice.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.checkout.port import HostedPages, Order, ProviderUnavailable
from quorate_api.database.work import Work
from quorate_api.documents.amounts import MICROS_PER_CENT
from quorate_api.errors import Code, Problem
from quorate_api.payments.repository import PaymentRepository

_ROUNDS_MAX = 4  # ended by others meanwhile: each round follows a change by another request


@dataclass(frozen=True, slots=True)
class OpenPage:
    url: str
    expires_at: datetime


async def open_page(work: Work, provider: HostedPages, invoice: Row[Any], due_micros: int, origin: str) -> OpenPage:
    """The page for what is due. The caller holds the invoice's lock, which ends here."""
    try:
        for _ in range(_ROUNDS_MAX):
            now = datetime.now(UTC)
            attempt = await _attempt(work, provider, invoice.id, due_micros, now)
            if attempt is not None and (page := await _page(work, provider, invoice, attempt, origin)) is not None:
                return page
            await PaymentRepository(work.scope).lock(invoice.id)
    except ProviderUnavailable as error:
        raise Problem(Code.PAYMENT_PROVIDER_UNAVAILABLE, retry_after_s=5) from error
    raise Problem(Code.PAYMENT_IN_PROGRESS, retry_after_s=5)


async def _attempt(
    work: Work, provider: HostedPages, invoice_id: UUID, due_micros: int, now: datetime
) -> Row[Any] | None:
    """The attempt to go on with. None: the last one has been ended, so look again."""
    payments = PaymentRepository(work.scope)
    last = await payments.last_checkout(invoice_id)
    if last is None or last.ended:
        return await payments.start_checkout(
            invoice_id=invoice_id,
            attempt=1 if last is None else last.attempt + 1,
            amount_micros=due_micros,
            created_at=now,
            expires_at=(now + timedelta(seconds=limits.CHECKOUT_LIFE_S)).replace(microsecond=0),
        )
    if last.amount_micros == due_micros and last.expires_at > now + timedelta(seconds=limits.CHECKOUT_LEFT_S_MIN):
        return last
    if last.session_id is not None:  # else nobody was sent to its page
        async with work.outside():
            unpaid = await provider.end(last.session_id)
        if not unpaid:
            raise Problem(Code.PAYMENT_IN_PROGRESS, retry_after_s=5)
    await PaymentRepository(work.scope).end_checkout(invoice_id, last.attempt)
    return None


async def _page(
    work: Work, provider: HostedPages, invoice: Row[Any], attempt: Row[Any], origin: str
) -> OpenPage | None:
    """None: the attempt was ended meanwhile."""
    if attempt.url is not None:
        return OpenPage(attempt.url, attempt.expires_at)
    order = Order(
        invoice_id=invoice.id,
        attempt=attempt.attempt,
        number=invoice.number,
        cents=attempt.amount_micros // MICROS_PER_CENT,
        currency=invoice.currency,
        expires_at=attempt.expires_at,
        paid_url=f"{origin}/invoices/{invoice.id}?paid=true",
        back_url=f"{origin}/invoices/{invoice.id}",
    )
    async with work.outside():
        page = await provider.open(order)
    stored = await PaymentRepository(work.scope).store_page(invoice.id, attempt.attempt, page.session_id, page.url)
    return OpenPage(page.url, attempt.expires_at) if stored else None
