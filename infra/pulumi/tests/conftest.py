from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fake_api import PROJECT, FakeApi


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    yield fake
    fake.stop()
    assert not fake.violations


@pytest.fixture
def props(api: FakeApi) -> dict[str, Any]:
    """As Pulumi's engine hands them over: every number a float."""
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
