from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pulumi
import pytest
from engine import Mocks
from fake_api import PROJECT, FakeApi
from pulumi.runtime.mocks import MockMonitor


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    yield fake
    fake.stop()
    assert not fake.violations


@pytest.fixture
def props(api: FakeApi) -> dict[str, Any]:
    """The properties as Pulumi's engine passes them: every number is a float."""
    return {
        "api_url": api.url,
        "api_key": "qk_manage",
        "project_id": PROJECT,
        "name": "orders",
        "durability": "persistent",
        "replication_degree": 3.0,
        "request_size_bytes": 64.0,
        "rate_per_s": 5000.0,
        "on_sla_change": "refuse",
        "owner": "shop/dev/orders",
    }


@pytest.fixture
def mocks(monkeypatch) -> Mocks:
    asyncio.set_event_loop(asyncio.new_event_loop())  # outputs belong to the loop of their test
    mocks = Mocks()
    register = MockMonitor.RegisterResource

    def keep(monitor, request):
        mocks.requests[request.type, request.name] = request
        return register(monitor, request)

    monkeypatch.setattr(MockMonitor, "RegisterResource", keep)
    pulumi.runtime.set_mocks(mocks, project="shop", stack="dev")
    return mocks
