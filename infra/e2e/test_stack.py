"""The stack itself: two side by side, no second start, servers that come back, state that survives."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Owner
from quorate_local import AlreadyRunning, Stack, StackOptions
from quorate_local.components import http_status
from quorate_local.process import Running


def test_a_second_start_is_refused_politely(stack: Stack) -> None:
    with pytest.raises(AlreadyRunning, match=r"runs in .* already"):
        Stack(stack.options).start()
    assert stack.dead() == []


def test_two_stacks_run_side_by_side_and_one_keeps_its_state(stack: Stack, own_state: Path, alice: Owner) -> None:
    options = StackOptions.from_environment(state=own_state, servers=1)
    with Stack(options) as other:
        first_url = other.api_url
        assert first_url != stack.api_url
        assert http_status(f"{first_url}/v1/ready") == http_status(f"{stack.api_url}/v1/ready") == 200
    assert Running.recorded(other.layout) == [], "everything was stopped"
    with Stack(options) as again:
        assert again.api_url == first_url, "addresses are kept while their ports are free"
        assert http_status(f"{again.api_url}/v1/ready") == 200
    assert alice.customer.get("/v1/me")["user"]["email"] == alice.customer.email


def test_another_command_finds_the_running_stack(stack: Stack) -> None:
    found = Stack.open(StackOptions(state=stack.layout.root))
    assert found.dead() == []
    assert found.api_url == stack.api_url
    assert found.processes().keys() == stack.processes().keys()
