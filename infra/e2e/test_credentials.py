"""Credentials that end: a revoked key is refused by servers in seconds, and another signing key leaves no gap."""

from __future__ import annotations

import subprocess
import time
from typing import Any

from conftest import FOLDER
from quorate import wire
from quorate.codes import Code
from quorate_accounts import revocation
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions, components
from quorate_local.display import Display
from wire_client import WireClient

SLA = {"durability": "in_memory", "replication_degree": 1, "request_size_bytes": 64, "rate_per_s": 100}


def test_servers_refuse_a_revoked_key_within_seconds(stack: Stack) -> None:
    with Customer(stack.api_url, "e2e-revoked") as customer:
        figures = {figure.name: figure for figure in revocation.measure(customer, Display(quiet=True), quick=True)}
    assert figures["revocation_p99_s"].met, figures
    assert figures["revocation_others_failed"].met, figures


def attach(handle: dict[str, Any]) -> Code | None:
    """The code of the refusal; None: it was attached."""
    with WireClient(handle) as client:
        answer = client.attach(handle["group_id"], handle["token"])
        return None if isinstance(answer, wire.Attached) else Code(answer.code)


def test_the_signing_key_is_exchanged_without_a_gap() -> None:
    stack = Stack(StackOptions.from_environment(state=FOLDER / "signing", servers=1))
    stack.wipe()
    with stack, Customer(stack.api_url, "e2e-signing") as customer:
        group = customer.create_group("g", SLA)
        path = f"/v1/groups/{group['id']}/handle"

        def rotate(step: str, *more: str) -> None:
            command = [
                components.quorate_api(),
                "keys-rotate",
                "--dir",
                str(stack.layout.secrets),
                "--step",
                step,
                *more,
            ]
            subprocess.run(command, check=True, capture_output=True, timeout=60)

        former = customer.get(path)
        rotate("prepare")
        assert attach(former) is None
        rotate("switch")
        stack.restart("api")
        present = customer.get(path)
        assert present["token"] != former["token"]
        assert attach(present) is None, "servers had heard of the key before it signed"
        assert attach(former) is None, "tokens that were issued before go on"
        rotate("finish", "--now")
        assert _soon(former) == Code.TOKEN_INVALID
        assert attach(present) is None
    stack.wipe()


def _soon(handle: dict[str, Any]) -> Code | None:
    """The coordinator reads the file each second; the answer once servers have heard of it."""
    deadline = time.monotonic() + 10
    while (code := attach(handle)) is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return code
