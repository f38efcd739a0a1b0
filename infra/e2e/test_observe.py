"""Prometheus beside a real stack: every alert and every panel finds live series, and a dead server shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import quorate
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions, observing
from quorate_observe import dashboards
from quorate_observe.live import Prometheus

FAILED = 'max(quorate_fleet_servers{quorate_state="failed"})'
TIMEOUT_S = 30
# Panels without data on a healthy stack.
EMPTY = {"Refusals"}


def test_alerts_and_panels_have_live_series(own_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    options = StackOptions.from_environment(state=own_state, servers=3, observe=True)
    with Stack(options) as stack, Customer(stack.api_url, "observed") as customer:
        sla = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 100}
        group = customer.create_group("observed", sla)
        asyncio.run(append(stack.api_url, customer.api_key, group["id"]))
        assert stack.prometheus_url is not None
        prometheus = Prometheus(stack.prometheus_url)
        try:
            _until("the fleet shows", lambda: failed(prometheus) == 0)
            stack.kill_server("s3")  # found to be missing while the alerts wait for their series
            works, table = observing.check_alerts(stack.prometheus_url, busy=True)
            assert works, table
            _until("every panel has data", lambda: all(prometheus.query(panel[1]) for panel in panels()))
            _until("the dead server shows", lambda: failed(prometheus) == 1)
        finally:
            prometheus.close()


def _until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, f"not so after {TIMEOUT_S} s: {what}"
        time.sleep(0.2)


def panels() -> list[tuple[str, str]]:
    """(title, expression) of every panel that should show something."""
    every = [panel for dashboard in dashboards.ALL for panel in dashboard.expressions()]
    return [panel for panel in every if panel[0] not in EMPTY]


async def append(api_url: str, key: str, group_id: str) -> None:
    log = await quorate.connect_group(api_url, key, group_id)
    for number in range(20):
        await log.append(b"entry %d" % number)
    await log.close()


def failed(prometheus: Prometheus) -> float | None:
    """How many servers failed, or None while nobody has said it yet."""
    series = prometheus.query(FAILED)
    return float(series[0]["value"][1]) if series else None
