"""The parts of a dashboard, and Grafana's JSON of them.

A dashboard has a row of figures with an expected value, and below it graphs, two in a row. Each has a unit, and a
description that ends with the operator's next step. Red means that an operator has to act.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

WIDTH = 24  # columns of Grafana's grid
FIGURE_HEIGHT, GRAPH_HEIGHT = 4, 8
SCHEMA_VERSION = 39  # Grafana 10 and newer

Unit = Literal["short", "percentunit", "s", "bytes", "Bps", "ops", "currencyUSD", "none"]


@dataclass(frozen=True)
class Query:
    """`legend`: Grafana's, with labels in double braces."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Graph:
    title: str
    unit: Unit
    description: str
    queries: tuple[Query, ...]
    stacked: bool = False


@dataclass(frozen=True)
class Figure:
    """One number. `red_from`: least value at which an operator has to act; None: it only informs."""

    title: str
    unit: Unit
    description: str
    expression: str
    red_from: float | None = None


@dataclass(frozen=True)
class Dashboard:
    file: str
    title: str
    description: str
    figures: tuple[Figure, ...]
    graphs: tuple[Graph, ...]

    def expressions(self) -> list[tuple[str, str]]:
        """Every query as (panel, expression)."""
        of_graphs = [(graph.title, query.expression) for graph in self.graphs for query in graph.queries]
        return [(figure.title, figure.expression) for figure in self.figures] + of_graphs


_SOURCE = {"type": "prometheus", "uid": "${source}"}


def as_json(dashboard: Dashboard) -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    width = WIDTH // max(1, len(dashboard.figures))
    for number, figure in enumerate(dashboard.figures):
        place = {"x": number * width, "y": 0, "w": width, "h": FIGURE_HEIGHT}
        panels.append(_figure(figure, len(panels) + 1, place))
    half = WIDTH // 2
    for number, graph in enumerate(dashboard.graphs):
        y = FIGURE_HEIGHT + number // 2 * GRAPH_HEIGHT
        place = {"x": number % 2 * half, "y": y, "w": half, "h": GRAPH_HEIGHT}
        panels.append(_graph(graph, len(panels) + 1, place))
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}
    return {
        "uid": f"quorate-{dashboard.file}",
        "title": f"Quorate: {dashboard.title}",
        "description": dashboard.description,
        "tags": ["quorate", "generated from infra/observability"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": False,
        "graphTooltip": 1,  # one crosshair over all panels
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "utc",
        "templating": {"list": [source]},
        "links": [
            {"type": "dashboards", "title": "Quorate", "tags": ["quorate"], "asDropdown": True, "keepTime": True}
        ],
        "panels": panels,
    }


def _figure(figure: Figure, number: int, place: dict[str, int]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "text", "value": None}]
    if figure.red_from is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": figure.red_from}]
    return {
        **_panel("stat", figure.title, figure.description, number, place),
        "fieldConfig": {
            "defaults": {
                "unit": figure.unit,
                "noValue": "unknown",
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "none"},
        "targets": [_target(Query(figure.expression), 0)],
    }


def _graph(graph: Graph, number: int, place: dict[str, int]) -> dict[str, Any]:
    custom = {
        "lineWidth": 1,
        "fillOpacity": 20 if graph.stacked else 0,
        "showPoints": "never",
        "stacking": {"mode": "normal" if graph.stacked else "none"},
    }
    return {
        **_panel("timeseries", graph.title, graph.description, number, place),
        "fieldConfig": {"defaults": {"unit": graph.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [_target(query, index) for index, query in enumerate(graph.queries)],
    }


def _panel(kind: str, title: str, description: str, number: int, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": kind,
        "title": title,
        "description": description,
        "datasource": _SOURCE,
        "gridPos": place,
    }


def _target(query: Query, index: int) -> dict[str, Any]:
    return {
        "refId": chr(ord("A") + index),
        "datasource": _SOURCE,
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
    }
