"""Evaluates every alert's expression on a running Prometheus, and checks that its series exist.

An alert on series that no process sends never fires, and no operator notices. This check finds it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import httpx2

from quorate_observe import alerts
from quorate_observe.expressions import Asked, asked

TIMEOUT_S = 5.0
AGAIN_S = 0.5


@dataclass(frozen=True)
class Evaluated:
    """One alert's evaluation. `error`: Prometheus' message. `missing`: inputs without series, or without a label.
    `excuse`: the event with which they begin, if they may be missing yet."""

    alert: str
    error: str | None
    inputs: int
    missing: tuple[str, ...]
    firing: int
    excuse: str | None = None

    @property
    def works(self) -> bool:
        return self.error is None and (not self.missing or self.excuse is not None)


class Prometheus:
    def __init__(self, url: str) -> None:
        self._http = httpx2.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query. Raises `BadExpression`."""
        answer = self._http.get("/api/v1/query", params={"query": expression})
        body = answer.json()
        if body.get("status") != "success":
            raise BadExpression(str(body.get("error")))
        data = body["data"]
        return list(data["result"]) if data["resultType"] == "vector" else []

    def close(self) -> None:
        self._http.close()


class BadExpression(Exception):
    """Prometheus cannot evaluate it. The message has the reason."""


def evaluate(prometheus: Prometheus, alert: alerts.Alert, *, idle: bool) -> Evaluated:
    """`idle`: series that begin with traffic may be missing."""
    try:
        firing = len(prometheus.query(alert.expression))
    except BadExpression as error:
        return Evaluated(alert.name, str(error), 0, (), 0)
    inputs, missing = 0, []
    for each in asked(alert.expression):
        found = prometheus.query(each.name)
        inputs += len(found)
        lacking = _lacking(each, found)
        if lacking is not None and lacking not in missing:
            missing.append(lacking)
    excuse = alert.series_begin if idle and inputs == 0 else None
    return Evaluated(alert.name, None, inputs, tuple(missing), firing, excuse)


def _lacking(wanted: Asked, found: list[dict[str, Any]]) -> str | None:
    if not found:
        return wanted.name
    without = [label for label in sorted(wanted.labels) if not any(label in series["metric"] for series in found)]
    return f"{wanted.name}{{{', '.join(without)}}}" if without else None


def wait_for_all(url: str, timeout_s: float, *, idle: bool) -> list[Evaluated]:
    """Repeat until every alert works, at most for `timeout_s`: processes export every ten seconds."""
    deadline = time.monotonic() + timeout_s
    prometheus = Prometheus(url)
    known = alerts.load()
    try:
        while True:
            found = [evaluate(prometheus, alert, idle=idle) for alert in known]
            if all(each.works for each in found) or time.monotonic() > deadline:
                return found
            time.sleep(AGAIN_S)
    finally:
        prometheus.close()


def table(found: list[Evaluated]) -> str:
    width = max(len(each.alert) for each in found) + 2
    lines = [f"  {'alert':<{width}}{'evaluates':<11}{'series':>6}  fires now"]
    for each in found:
        lines.append(
            f"  {each.alert:<{width}}{'yes' if each.error is None else 'NO':<11}{each.inputs:>6}  {each.firing or '-'}"
        )
        lines += [f"      {each.error}"] if each.error else []
        until = f" yet: they begin with {each.excuse}" if each.excuse else ""
        lines += [f"      no series of {missing}{until}" for missing in each.missing]
    good = sum(each.works for each in found)
    return "\n".join([*lines, f"  {good} of {len(found)} alerts work on live data."])
