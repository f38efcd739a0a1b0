"""The conditions under which an alert counts as working on live data."""

from typing import Any

import pytest

from quorate_observe import alerts
from quorate_observe.live import BadExpression, evaluate, table


class FakePrometheus:
    """Answers queries from a table. Other queries have no series."""

    def __init__(self, series: dict[str, list[dict[str, str]]]) -> None:
        self._series = series

    def query(self, expression: str) -> list[dict[str, Any]]:
        if "((" in expression:
            raise BadExpression("unclosed left parenthesis")
        return [{"metric": labels, "value": [0, "1"]} for labels in self._series.get(expression, [])]


def alert(expression: str, begins: str | None = None) -> alerts.Alert:
    annotations = {"series_begin": begins} if begins else {}
    return alerts.Alert("A", expression, "page", annotations, alerts.RULES / "x.rules.yaml")


@pytest.mark.parametrize(
    ("expression", "begins", "idle", "works"),
    [
        ('a{x="1"} > 0', None, True, True),
        ('a{y="1"} > 0', None, True, False),
        ("a / b > 0", None, True, False),
        ("b > 0", None, True, False),
        ("b > 0", "the first b", True, True),
        ("b > 0", "the first b", False, False),
        ("a / b > 0", "the first b", True, False),
        ("((a > 0", None, True, False),
    ],
)
def test_it_works_if_its_inputs_are_there(expression: str, begins: str | None, idle: bool, works: bool) -> None:
    prometheus: Any = FakePrometheus({"a": [{"x": "1"}, {"x": "2"}]})
    found = evaluate(prometheus, alert(expression, begins), idle=idle)
    assert found.works is works, table([found])
    assert ("no series" in table([found])) == bool(found.missing)
