"""Budgets and the alerts that they gave."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, model_validator

from quorate_api import limits
from quorate_api.http.schemas import Input, Output


def _sorted_once(values: list[int]) -> list[int]:
    if len(set(values)) != len(values):
        raise ValueError("must name each threshold once")
    return sorted(values)


Percent = Annotated[int, Field(ge=1, le=limits.BUDGET_THRESHOLD_PERCENT_MAX)]
Thresholds = Annotated[list[Percent], Field(max_length=limits.BUDGET_THRESHOLDS_MAX), AfterValidator(_sorted_once)]
Action = Literal["alert", "throttle", "suspend"]


class NewBudget(Input):
    """The budget of a project, or without one of the organization. It takes the place of an earlier one."""

    project_id: Annotated[UUID, Field(strict=False)] | None = Field(None, description="null: the whole organization.")
    monthly_micros: int = Field(ge=1, le=limits.BUDGET_MICROS_MAX)
    thresholds_percent: Thresholds = Field(
        default=list(limits.BUDGET_THRESHOLDS_PERCENT), description="Shares of the amount that the month costs so far."
    )
    forecast_thresholds_percent: Thresholds = Field(
        default=list(limits.BUDGET_FORECAST_THRESHOLDS_PERCENT),
        description="Shares of the amount that the month is expected to cost.",
    )
    action: Action = Field(
        "alert",
        description="What happens within a minute once the amount is reached. alert: thresholds are shown, and "
        "nothing else. throttle: groups have their reservation alone, without burst capacity, until the month is "
        "over. suspend: groups take neither appends nor reads. It begins early enough that reservations and kept "
        "data, which cost on, stay below the amount.",
    )

    @model_validator(mode="after")
    def _alerts_at_all(self) -> "NewBudget":
        if not self.thresholds_percent and not self.forecast_thresholds_percent:
            raise ValueError("needs a threshold in thresholds_percent or forecast_thresholds_percent")
        return self


class BudgetAlert(Output):
    """A threshold that was reached, once in its month."""

    id: UUID
    month: str = Field(description="YYYY-MM, in UTC.")
    kind: Literal["actual", "forecast"]
    threshold_percent: int
    amount_micros: int = Field(description="Cost of the month so far, or its forecast, when the threshold was reached.")
    monthly_micros: int = Field(description="The budget then.")
    at: datetime


class CapInForce(Output):
    """What a budget does to its groups since `at`, until the month is over or the budget is changed."""

    action: Literal["throttle", "suspend"]
    amount_micros: int = Field(
        description="throttle: cost of the month so far, then. suspend: cost until the month's end that was certain."
    )
    at: datetime


class Budget(Output):
    id: UUID
    project_id: UUID | None = Field(description="null: the whole organization.")
    project_name: str | None
    monthly_micros: int
    currency: str
    thresholds_percent: list[int]
    forecast_thresholds_percent: list[int]
    action: Action
    acted: CapInForce | None = Field(description="null: the amount is not reached, or the budget only alerts.")
    created_at: datetime
    updated_at: datetime
    alerts: list[BudgetAlert] = Field(description="This month's, newest first.")
