"""Thresholds of a budget that are reached, and have not told so this month. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from quorate_api.months.calendar import month_name

Kind = Literal["actual", "forecast"]
Fired = Collection[tuple[str, int]]  # kind and percent


@dataclass(frozen=True, slots=True)
class Budget:
    id: UUID
    organization_id: UUID
    project_id: UUID | None
    monthly_micros: int
    thresholds_percent: tuple[int, ...]
    forecast_thresholds_percent: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """The cost of the month so far, and at its end."""

    spent_micros: int
    forecast_micros: int


@dataclass(frozen=True, slots=True)
class Alert:
    budget_id: UUID
    organization_id: UUID
    month: str
    kind: Kind
    threshold_percent: int
    amount_micros: int
    monthly_micros: int


def evaluate(budget: Budget, fired: Fired, totals: Totals, now: datetime) -> list[Alert]:
    """Alerts of thresholds that are reached and are not in `fired`, the alerts of this month."""
    return [
        Alert(
            budget_id=budget.id,
            organization_id=budget.organization_id,
            month=month_name(now),
            kind=kind,
            threshold_percent=percent,
            amount_micros=amount,
            monthly_micros=budget.monthly_micros,
        )
        for kind, percent, amount in _thresholds(budget, totals)
        if (kind, percent) not in fired and amount * 100 >= budget.monthly_micros * percent
    ]


def is_spent(budget: Budget, fired: Fired) -> bool:
    """Whether nothing is left that the budget could tell this month."""
    return all((kind, percent) in fired for kind, percent, _ in _thresholds(budget, Totals(0, 0)))


def _thresholds(budget: Budget, totals: Totals) -> list[tuple[Kind, int, int]]:
    actual: list[tuple[Kind, int, int]] = [
        ("actual", percent, totals.spent_micros) for percent in budget.thresholds_percent
    ]
    return actual + [("forecast", percent, totals.forecast_micros) for percent in budget.forecast_thresholds_percent]
