"""A group that ran in the last two hours of the last month, and operators' corrections of it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg

from quorate_api.billing.issuer import Issuer
from quorate_api.telemetry.histogram import bucket_of
from quorate_api.telemetry.windows import WINDOW_S, Window
from quorate_api.worker.month_close import close_months
from quorate_api.worker.rollup import roll_up
from support.customer import Customer, new_key
from support.issuer import UNTAXED
from support.usage import Usage

MINUTES = 120


def month_of(at: datetime) -> datetime:
    return at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


class LastMonth:
    """`end`: the begin of this month. Every time is relative to it, so that tests run at any time of a month."""

    def __init__(self, usage: Usage, customer: Customer, group_id: str) -> None:
        self.usage = usage
        self.customer = customer
        self.group_id = group_id
        self.end = month_of(datetime.now(UTC))
        self.start = month_of(self.end - timedelta(days=1))
        self.began = self.end - timedelta(seconds=MINUTES * WINDOW_S)

    @classmethod
    async def of(cls, customer: Customer, usage: Usage, owner: psycopg.Connection, group_id: str) -> "LastMonth":
        month = cls(usage, customer, group_id)
        owner.execute(
            "UPDATE groups SET created_at = %s, active_at = %s WHERE id = %s", (month.began, month.began, group_id)
        )
        return month

    @property
    def name(self) -> str:
        return f"{self.start:%Y-%m}"

    @property
    def day(self) -> str:
        return f"{self.began:%Y-%m-%d}"

    def at(self, minute: int) -> str:
        """The begin of a minute of the group's life."""
        return (self.began + timedelta(minutes=minute)).isoformat()

    def window(self, minute: int, committed: int, **more: Any) -> Window:
        """A head's report on a minute, since whose begin ten entries were committed."""
        start_s = int(self.began.timestamp()) + minute * WINDOW_S
        counters = {"active_ms": 60_000, "latency_us": {bucket_of(300): 10}} | more
        first = max(0, committed - 10)
        return Window(
            self.group_id, 1, "a", 1, start_s, "head", committed_entries=committed, first_committed_entries=first,
            **counters,
        )  # fmt: skip

    def minutes(self, numbers: Iterable[int], **more: Any) -> list[Window]:
        return [self.window(number, 10 * (number + 1), **more) for number in numbers]

    async def ingest(self, windows: list[Window]) -> None:
        """Ingest windows, sum up their hours and judge them."""
        await self.usage.ingest(windows)
        await self.judge()

    async def judge(self) -> None:
        await roll_up(self.usage.engine, (self.end + timedelta(days=1)).timestamp())

    async def close(self, issuer: Issuer = UNTAXED, months: int = 0) -> int:
        """Close the last month, and `months` after it."""
        at = self.end
        for _ in range(months):
            at = month_of(at + timedelta(days=31))
        return await close_months(self.usage.engine, issuer, at, delay_s=0)

    async def documents(self) -> list[dict[str, Any]]:
        """All of the customer's, oldest first."""
        heads = (await self.customer.get("/v1/invoices", params={"limit": "200"}))["items"]
        return [await self.customer.get(f"/v1/invoices/{head['id']}") for head in reversed(heads)]


async def correct(operator: httpx2.AsyncClient, group_id: str, **asked: Any) -> httpx2.Response:
    body = {"reason": "it was counted twice"} | asked
    return await operator.post(
        f"/v1/operator/groups/{group_id}/corrections", json=body, headers={"Idempotency-Key": new_key()}
    )


async def corrected(operator: httpx2.AsyncClient, group_id: str, **asked: Any) -> dict[str, Any]:
    answer = await correct(operator, group_id, **asked)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())
