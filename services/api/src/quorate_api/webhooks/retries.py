"""After an attempt to deliver: (attempts, answer, now) → (status, time of the next attempt). Pure.

Standard Webhooks, "Deliverability and reliability": retries over days with growing pauses, and an end by 410 Gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from quorate_api import limits

Status = Literal["waiting", "delivered", "failed"]
GONE = 410


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one attempt. `http_status` None: nobody answered. `error` None: it was received."""

    http_status: int | None
    error: str | None
    duration_ms: int

    @property
    def is_received(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True)
class Next:
    status: Status
    at: datetime | None  # the next attempt; None unless it waits


def after(attempts: int, answer: Answer, now: datetime, pauses_s: Sequence[int] = limits.WEBHOOK_PAUSES_S) -> Next:
    """`attempts`: with this one."""
    if answer.is_received:
        return Next("delivered", None)
    if answer.http_status == GONE or attempts > len(pauses_s):
        return Next("failed", None)
    return Next("waiting", now + timedelta(seconds=pauses_s[attempts - 1]))


def is_to_be_disabled(answer: Answer, failing_since: datetime | None, now: datetime) -> bool:
    """Whether its receiver asks for no more, or has received nothing for days."""
    if answer.http_status == GONE:
        return True
    for_long = timedelta(seconds=limits.WEBHOOK_FAILING_S)
    return not answer.is_received and failing_since is not None and now - failing_since >= for_long
