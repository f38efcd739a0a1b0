"""Dashboards and alerts ask only for exported series."""

import re

import pytest

from quorate_observe import alerts, dashboards
from quorate_observe.expressions import Asked, asked, grouped_by, strangers
from quorate_observe.metrics import load

METRICS = load()


def test_names_and_labels_are_found() -> None:
    expression = (
        'histogram_quantile(0.99, sum by (le, job) (rate(a_bucket{x=~"b_total{c}",y!="1"}[5m])))'
        " / on (job) group_left (z) max(b offset 5m) > 1e3 or vector(0) unless c and absent(d)"
    )
    assert asked(expression) == [
        Asked("a_bucket", frozenset({"x", "y"})),
        Asked("b", frozenset()),
        Asked("c", frozenset()),
        Asked("d", frozenset()),
    ]
    assert grouped_by(expression) == {"le", "job", "z"}


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("rate(quorate_appends_total[5m])", []),
        ("rate(quorate_appends[5m])", ["quorate_appends"]),
        ('quorate_groups{quorate_role="head"}', []),
        ('quorate_groups{role="head"}', ["quorate_groups{role}"]),
        ("sum by (instance, quorate_role) (quorate_groups)", []),
        ("sum by (role) (quorate_groups)", ["by (role)"]),
        ("quorate_commit_duration_seconds", ["quorate_commit_duration_seconds"]),
    ],
)
def test_strangers_are_found(expression: str, found: list[str]) -> None:
    assert strangers(expression, METRICS) == found


def test_dashboards_name_only_what_is_exported() -> None:
    wrong = [
        f"{dashboard.title}, {panel}: {found}"
        for dashboard in dashboards.ALL
        for panel, expression in dashboard.expressions()
        if (found := strangers(expression, METRICS))
    ]
    assert not wrong, "\n".join(wrong)


def test_alerts_name_only_what_is_exported() -> None:
    wrong = [f"{alert.name}: {found}" for alert in alerts.load() if (found := strangers(alert.expression, METRICS))]
    assert not wrong, "\n".join(wrong)


def test_label_values_that_are_matched_exist() -> None:
    """`quorate_status="paused"` is a status that processes send."""
    known = {name: metric for metric in METRICS for name in metric.series_names()}
    every = [alert.expression for alert in alerts.load()]
    every += [expression for dashboard in dashboards.ALL for _, expression in dashboard.expressions()]
    seen = 0
    for expression in every:
        for name, matchers in re.findall(r"([a-z_]+)\{([^}]*)\}", expression):
            for label, value in re.findall(r'([a-z_]+)(?:=|!=)"([^"]*)"', matchers):
                allowed = (
                    {attribute.replace(".", "_"): values for attribute, values in known[name].attributes.items()}
                    if name in known
                    else {}
                )
                if allowed.get(label):
                    assert value in allowed[label], f"{name}: {label} is never {value}"
                    seen += 1
    assert seen > 10, "the pattern above finds nothing"


def test_every_exported_metric_is_shown_somewhere() -> None:
    shown = {
        each.name
        for dashboard in dashboards.ALL
        for _, expression in dashboard.expressions()
        for each in asked(expression)
    }
    unseen = [metric.name for metric in METRICS if not shown & set(metric.series_names())]
    assert not unseen, f"on no dashboard: {unseen}"
