"""One real stack for all tests here, with two customers who own a group each.

Nothing is simulated: PostgreSQL, Redis, coordinator, replica servers, API and worker run as they do in
production, in a state folder of their own. A test that breaks servers takes a stack of its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.options import REPOSITORY

FOLDER = REPOSITORY / "build" / "e2e"


@dataclass
class Owner:
    """A customer with an in-memory and a persistent group."""

    customer: Customer
    groups: dict[str, dict[str, Any]]

    def handle(self, durability: str = "in_memory") -> dict[str, Any]:
        return self.customer.get(f"/v1/groups/{self.groups[durability]['id']}/handle")


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """Three servers, so that a group of degree 3 has a replica on each."""
    stack = Stack(StackOptions.from_environment(state=FOLDER / "shared", servers=3))
    stack.wipe()
    with stack:
        yield stack
        assert stack.dead() == [], "a process of the shared stack did not survive the tests"


@pytest.fixture(scope="session")
def alice(stack: Stack) -> Iterator[Owner]:
    yield from _owner(stack, "e2e-first")


@pytest.fixture(scope="session")
def bob(stack: Stack) -> Iterator[Owner]:
    yield from _owner(stack, "e2e-second")


def _owner(stack: Stack, organization: str) -> Iterator[Owner]:
    with Customer(stack.api_url, organization) as customer:
        groups = {
            durability: customer.create_group(
                durability.replace("_", "-"),
                {"durability": durability, "replication_degree": 3, "request_size_bytes": 1024, "rate_per_s": 20_000},
            )
            for durability in ("in_memory", "persistent")
        }
        yield Owner(customer, groups)


@pytest.fixture
def own_state() -> Iterator[Path]:
    """A state folder for a test that starts a stack, or a part of one, itself."""
    path = FOLDER / f"own-{uuid.uuid4().hex[:8]}"
    yield path
    Stack(StackOptions(state=path)).wipe()
