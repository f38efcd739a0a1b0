"""(h) Dunning: reminders of invoices that are overdue.

A pass reads invoices that became due lately, a batch of them by the same few statements. The key of a reminder lets it
be recorded once, so that restarts and several workers repeat nothing.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.events.catalogue import EventType, PaymentReminded
from quorate_api.events.repository import EventRepository
from quorate_api.payments.dunning import Debt, Remind, dun
from quorate_api.payments.repository import Books, DunningRepository
from quorate_api.payments.service import stands

log = structlog.get_logger(__name__)

REASON = "invoices of all organizations are reminded of alike"


async def remind(engine: AsyncEngine, now: datetime | None = None) -> int:
    """One pass. Returns the number of new reminders. Several workers may run it at once."""
    now = now or datetime.now(UTC)
    earliest = now - timedelta(days=limits.DUNNING_ENDS_DAYS)
    latest = now - timedelta(days=limits.DUNNING_REMINDER_DAYS)
    after: tuple[datetime, UUID] | None = None
    recorded = 0
    while True:
        async with engine.begin() as connection:
            dunning = DunningRepository(EveryOrganization(connection, REASON))
            invoices = await dunning.due(earliest, latest, after, limits.DUNNING_INVOICES_MAX)
            if not invoices:
                return recorded
            books = await dunning.books(row.id for row in invoices)
            new = await dunning.record(_commands(invoices, books, now), now)
            await _tell(EventRepository(EveryOrganization(connection, REASON)), new, now)
        for row in new:
            log.info("payment reminder", invoice_id=str(row.invoice_id), stage=row.stage, due_micros=row.due_micros)
        recorded += len(new)
        after = (invoices[-1].due_at, invoices[-1].id)


async def _tell(events: EventRepository, reminders: Iterable[Row[Any]], now: datetime) -> None:
    for row in reminders:
        told = PaymentReminded(**{name: getattr(row, name) for name in PaymentReminded.model_fields})
        key = f"{row.invoice_id} {row.stage}"
        await events.add(row.organization_id, EventType.PAYMENT_REMINDED, key, told, now)


def _commands(invoices: list[Row[Any]], books: Books, now: datetime) -> list[Remind]:
    found = []
    for row in invoices:
        debt = Debt(row.id, row.organization_id, row.due_at, stands(row, books, now).due_micros)
        told = {each.stage: each.at for each in books.reminders.get(row.id, [])}
        if (command := dun(debt, told, now).command) is not None:
            found.append(command)
    return found
