"""The series of a PromQL expression: names and labels, found by its lexical rules. Pure.

It is no parser: Prometheus checks that an expression is well formed (`promtool`, and `live.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from quorate_observe.metrics import Metric

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_DURATION = re.compile(r"\[[^\]]*\]")
_SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\})?(\s*\()?")
_MATCHER = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)")
_WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}
_OWN = {"up", "ALERTS", "scalar"}  # labels that Prometheus adds
OWN_LABELS = {"job", "instance"}


@dataclass(frozen=True)
class Asked:
    """A series. `labels`: those in the selector, or in a grouping of the expression."""

    name: str
    labels: frozenset[str]


def asked(expression: str) -> list[Asked]:
    """Every series in the expression, with the labels of its own selector."""
    text = _DURATION.sub(" ", _STRING.sub('""', expression))
    text = _GROUPING.sub(" ", text)
    found = {}
    for match in _SELECTOR.finditer(text):
        name, matchers, called = match.groups()
        before = text[match.start() - 1] if match.start() else " "
        if called or name.lower() in _WORDS or before.isdigit() or before == ".":
            continue
        labels = frozenset(_MATCHER.findall(matchers or ""))
        found[name, labels] = Asked(name, labels)
    return list(found.values())


def grouped_by(expression: str) -> set[str]:
    """Labels by which the expression groups or joins."""
    groups = _GROUPING.findall(_STRING.sub('""', expression))
    return {label.strip() for group in groups for label in group.split(",") if label.strip()}


def strangers(expression: str, metrics: list[Metric]) -> list[str]:
    """Names in the expression, and labels of names, that no process exports. Empty if all are exported."""
    known = {name: metric for metric in metrics for name in metric.series_names()}
    found = []
    labels = set(OWN_LABELS)
    for each in asked(expression):
        if each.name in _OWN:
            continue
        metric = known.get(each.name)
        if metric is None:
            found.append(each.name)
            continue
        labels |= metric.labels()
        found += [f"{each.name}{{{label}}}" for label in sorted(each.labels - metric.labels())]
    return found + [f"by ({label})" for label in sorted(grouped_by(expression) - labels)]
