"""The alert rules of `alerts/` and their unit tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from quorate_observe.metrics import FOLDER

RULES = FOLDER / "alerts"
TESTS = RULES / "tests"
SEVERITIES = ("page", "ticket")


@dataclass(frozen=True)
class Alert:
    name: str
    expression: str
    severity: str
    annotations: dict[str, str]
    file: Path

    @property
    def series_begin(self) -> str | None:
        """The event with which its series begin, if an idle fleet has none, such as "the first append"."""
        return self.annotations.get("series_begin")


def rule_files() -> list[Path]:
    return sorted(RULES.glob("*.rules.yaml"))


def test_files() -> list[Path]:
    return sorted(TESTS.glob("*.yaml"))


def load() -> list[Alert]:
    return [alert for path in rule_files() for alert in _alerts(path)]


def _alerts(path: Path) -> Iterator[Alert]:
    for group in yaml.safe_load(path.read_text())["groups"]:
        for rule in group["rules"]:
            severity = rule.get("labels", {}).get("severity", "")
            yield Alert(rule["alert"], rule["expr"], severity, rule.get("annotations", {}), path)


def tried() -> dict[str, set[bool]]:
    """For each alert in a unit test: whether it is expected to fire, not to fire, or both."""
    found: dict[str, set[bool]] = {}
    for path in test_files():
        for test in yaml.safe_load(path.read_text())["tests"]:
            for case in test["alert_rule_test"]:
                found.setdefault(case["alertname"], set()).add(bool(case.get("exp_alerts")))
    return found
