"""Spend as OpenMetrics text. Pure."""

from collections.abc import Iterable, Mapping

from quorate_api import limits

MEDIA_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SPEND, FORECAST, BUDGET = "quorate_spend_micros", "quorate_spend_forecast_micros", "quorate_budget_micros"

SeriesKey = tuple[str, str, str]  # project, group, kind
REST = ("", "")  # no project and no group has an empty name


def render(spent: Mapping[SeriesKey, int], forecast_micros: int, budgets: Mapping[str, int]) -> str:
    """`budgets`: by the project's name, empty for the organization's."""
    lines = _head(SPEND, "Cost of this month so far in millionths of the currency. Without a group: all others.")
    lines += [
        _sample(SPEND, {"project": project, "group": group, "kind": kind}, amount)
        for (project, group, kind), amount in sorted(bounded(spent).items())
    ]
    lines += _head(FORECAST, "Expected cost of the whole month in millionths of the currency.")
    lines.append(_sample(FORECAST, {}, forecast_micros))
    lines += _head(BUDGET, "Monthly budget in millionths of the currency. Without a project: the organization's.")
    lines += [_sample(BUDGET, {"project": project}, amount) for project, amount in sorted(budgets.items())]
    return "\n".join([*lines, "# EOF", ""])


def bounded(spent: Mapping[SeriesKey, int]) -> dict[SeriesKey, int]:
    """The dearest series, and the sum of the others for each kind."""
    ranked = sorted(spent.items(), key=lambda item: (-item[1], item[0]))
    found = dict(ranked[: limits.SPEND_SERIES_MAX])
    for (_, _, kind), amount in ranked[limits.SPEND_SERIES_MAX :]:
        found[*REST, kind] = found.get((*REST, kind), 0) + amount
    return found


def _head(name: str, helping: str) -> list[str]:
    return [f"# TYPE {name} gauge", f"# UNIT {name} micros", f"# HELP {name} {helping}"]


def _sample(name: str, labels: Mapping[str, str], value: int) -> str:
    written = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{written}}} {value}" if written else f"{name} {value}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def series(amounts: Iterable[tuple[SeriesKey, int]]) -> dict[SeriesKey, int]:
    """Groups of one name are one series: a deleted group's name is free again."""
    found: dict[SeriesKey, int] = {}
    for key, amount in amounts:
        found[key] = found.get(key, 0) + amount
    return found
