"""Which series a PromQL expression asks for: names and labels, found by its lexical rules. Pure.

Not a parser: whether an expression is well formed is Prometheus' to say (`promtool`, and `live.py`).
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
_OWN = {"up", "ALERTS", "scalar"}  # that Prometheus makes itself
OWN_LABELS = {"job", "instance"}


@dataclass(frozen=True)
class Asked:
    """`labels`: those that the selector or a grouping of the expression names."""

    name: str
    labels: frozenset[str]


def asked(expression: str) -> list[Asked]:
    """Every series that the expression names, with the labels its own selector matches on."""
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
    """Labels that the expression groups or joins by."""
    groups = _GROUPING.findall(_STRING.sub('""', expression))
    return {label.strip() for group in groups for label in group.split(",") if label.strip()}


def strangers(expression: str, metrics: list[Metric]) -> list[str]:
    """What the expression names and nobody exports: names, and labels of names. Empty when all is well."""
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
