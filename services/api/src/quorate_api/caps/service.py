"""Caps of the caller's organization: what they have done, and room below those that suspend."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

from quorate_api import limits
from quorate_api.billing import account as accounts
from quorate_api.caps import outlook
from quorate_api.caps.decision import Owner
from quorate_api.caps.outlook import Outlook
from quorate_api.caps.repository import CapRepository
from quorate_api.database.scope import Scope, SomeOrganizations
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.months.calendar import LONGEST_MONTH_S, SeenMonth, month_begin, month_end, month_name
from quorate_api.pricing import prices
from quorate_api.totals.repository import TotalsRepository


async def require_room(work: Work, project_id: UUID, more_hourly_micros: int) -> None:
    """Raises `spend_cap` if a reservation that costs so much more an hour does not fit below a cap that suspends."""
    caps = [cap for cap in await CapRepository(work.scope).caps() if cap.action == "suspend"]
    caps = [cap for cap in caps if cap.owner in (None, project_id)]
    if not caps or more_hourly_micros <= 0:
        return
    now = datetime.now(UTC)
    month = month_at(now)
    seen = await look(work.scope, month)
    more = prices.amount_micros(month.left_s, more_hourly_micros, prices.HOUR_S)
    more_a_month = prices.amount_micros(LONGEST_MONTH_S, more_hourly_micros, prices.HOUR_S)
    acted = await CapRepository(work.scope).acted(month_name(now))
    for cap in caps:
        certain, whole = seen.position(cap.owner).certain_micros, seen.whole_month.get(cap.owner, 0)
        whose = "organization" if cap.owner is None else "project"
        cap_told = f"The {whose}'s spend cap is {_money(cap.monthly_micros)} a month"
        if cap.key in acted or certain + more > cap.monthly_micros:
            told = f"{_money(certain)} of this month is certain, and this reservation adds {_money(more)}."
            raise Problem(Code.SPEND_CAP, f"{cap_told}. {told}")
        if whole + more_a_month > cap.monthly_micros:
            told = f"a whole month with this reservation costs {_money(whole + more_a_month)} without any use."
            raise Problem(Code.SPEND_CAP, f"{cap_told}, and {told}")


async def least_micros(scope: Scope, owner: Owner) -> int:
    """The cost that no cap can avert: of this month, or of a whole one with the present reservations and data."""
    seen = await look(scope, month_at(datetime.now(UTC)))
    return max(seen.position(owner).certain_micros, seen.whole_month.get(owner, 0))


async def look(scope: Scope | SomeOrganizations, month: SeenMonth) -> Outlook:
    account = await accounts.read(scope, month.now)
    totals = TotalsRepository(scope)
    used = await totals.by_day(int(month.start.timestamp()))
    held = await totals.held_bytes(month.now_s - limits.HELD_BYTES_AGE_S)
    return await asyncio.to_thread(outlook.look, account, used, month, held)


def month_at(now: datetime) -> SeenMonth:
    start = month_begin(now)
    return SeenMonth(start, month_end(start), now)


def _money(micros: int) -> str:
    return f"{micros / 1_000_000:,.2f} {prices.CURRENCY}"
