"""Three coordinators: customers and servers go on with another one when the leader is lost."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions, components
from quorate_local.options import BadOptions

SLA = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 100}
SOON_S = 15  # an election takes half a second, and a busy machine its time


def test_the_leader_is_lost_and_customers_go_on(own_state: Path) -> None:
    options = StackOptions.from_environment(state=own_state, servers=3, coordinators=3)
    stack = Stack(options)
    with stack, Customer(stack.api_url, "e2e-coordinators") as customer:
        before = customer.create_group("before", SLA)
        first = stack.leader_name()
        stack.crash(first)
        began = time.monotonic()
        after = customer.create_group("after", SLA)  # the API waits for the next leader, and the servers obey it
        assert time.monotonic() - began < SOON_S
        assert stack.leader_name() != first

        # The third one leads with the first one back, which got what it missed.
        stack.restart(first)
        stack.crash(stack.leader_name())
        names = {group["name"] for group in customer.get(f"/v1/projects/{customer.project_id}/groups")["items"]}
        assert names == {before["name"], after["name"]}
        customer.create_group("at the end", SLA)

    with pytest.raises(BadOptions, match="COORDINATORS=3"):
        Stack(replace(options, coordinators=1)).start()
    # All of them start again on their logs.
    with Stack(options) as stack, Customer(stack.api_url, "e2e-again") as customer:
        customer.create_group("again", SLA)
        assert stack.dead() == []


def test_coordinators_write_into_one_another(own_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORATE_TRANSPORT", "ofi")
    monkeypatch.setenv("QUORATE_OFI_PROVIDER", "shm")
    options = StackOptions.from_environment(state=own_state, servers=3, coordinators=3)
    with Stack(options) as stack, Customer(stack.api_url, "e2e-rings") as customer:
        customer.create_group("a", SLA)
        first = stack.leader_name()
        assert ways(stack) == ["ofi", "ofi"]
        stack.crash(first)
        for number in range(5):
            customer.create_group(f"without it {number}", SLA)
        stack.restart(first)
        stack.crash(stack.leader_name())
        customer.create_group("with it again", SLA)
        logs = "".join(stack.layout.log(name).read_text() for name in options.coordinator_names())
        assert "one-sided writes failed" not in logs
        assert "panicked at" not in logs


def ways(stack: Stack) -> list[str]:
    """How the leader's messages go to the others, once all are linked."""
    until = time.monotonic() + SOON_S
    while True:
        view = components.coordinator_call(stack.leader_http(), components.Secrets(stack.layout), "GET", "/v1/quorum")
        found = [member["transport"] for member in view["members"] if member["member"] != view["member"]]
        if None not in found or time.monotonic() > until:
            return found
        time.sleep(0.05)
