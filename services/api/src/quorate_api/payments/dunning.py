"""Reminders of an overdue invoice: (invoice, stages told so far, now) → (stage, time of the next, command). Pure.

There are three stages, and each is told once. After a pause of the worker they are told one at a time, days apart, so
that a customer has time to answer each. Nothing is suspended at the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args
from uuid import UUID

from quorate_api import limits

Stage = Literal["reminder", "second_reminder", "final_notice"]
STAGES: tuple[Stage, ...] = get_args(Stage)
DAYS_AFTER_DUE: Mapping[Stage, int] = {
    "reminder": limits.DUNNING_REMINDER_DAYS,
    "second_reminder": limits.DUNNING_SECOND_REMINDER_DAYS,
    "final_notice": limits.DUNNING_FINAL_NOTICE_DAYS,
}
Told = Mapping[Stage, datetime]


@dataclass(frozen=True, slots=True)
class Debt:
    invoice_id: UUID
    organization_id: UUID
    due_at: datetime
    due_micros: int  # 0: nothing is left to pay


@dataclass(frozen=True, slots=True)
class Remind:
    """The command: tell the customer so."""

    invoice_id: UUID
    organization_id: UUID
    stage: Stage
    due_at: datetime
    due_micros: int


@dataclass(frozen=True, slots=True)
class Dunning:
    stage: Stage | None  # the last one that is told, with the command's
    next_at: datetime | None  # None: no further one
    command: Remind | None


def dun(debt: Debt, told: Told, now: datetime) -> Dunning:
    """`told`: when each stage was told."""
    stage = max(told, key=STAGES.index, default=None)
    at = _next_at(debt, told)
    if debt.due_micros == 0 or at is None or now > last_at(debt.due_at):
        return Dunning(stage, None, None)
    if now < at:
        return Dunning(stage, at, None)
    new = _next(told)
    assert new is not None, "it has a time"
    command = Remind(debt.invoice_id, debt.organization_id, new, debt.due_at, debt.due_micros)
    return Dunning(new, _next_at(debt, {**told, new: now}), command)


def last_at(due_at: datetime) -> datetime:
    """Debts that are older are not reminded of any more: a worker that was off for long surprises nobody."""
    return due_at + timedelta(days=limits.DUNNING_ENDS_DAYS)


def _next(told: Told) -> Stage | None:
    """The stage after the last one that was told."""
    place = max((STAGES.index(stage) + 1 for stage in told), default=0)
    return STAGES[place] if place < len(STAGES) else None


def _next_at(debt: Debt, told: Told) -> datetime | None:
    new = _next(told)
    if new is None:
        return None
    at = debt.due_at + timedelta(days=DAYS_AFTER_DUE[new])
    earliest = [when + timedelta(days=limits.DUNNING_GAP_DAYS) for when in told.values()]
    return max([at, *earliest])
