"""A persistent group whose disks are all gone: all are notified, its owner resets it, and the bill is right."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quorate import AppendRefused, Trimmed, sync
from quorate_harness.customer import Customer, Refused, billed_entries
from quorate_local import Stack, StackOptions

SERVERS = ("s1", "s2", "s3")
SLA = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 10_000}
OLD, NEW = 200, 50
PATIENCE_S = 30.0


@pytest.fixture
def own_stack(own_state: Path) -> Iterator[Stack]:
    with Stack(StackOptions.from_environment(state=own_state, servers=len(SERVERS))) as stack:
        yield stack


def test_a_persistent_group_without_disks_is_lost_and_reset(own_stack: Stack) -> None:
    with Customer(own_stack.api_url, "loses") as customer:
        group = customer.create_group("ledger", SLA)
        path = f"/v1/groups/{group['id']}"
        handle = customer.get(f"{path}/handle")
        with sync.connect_group(customer.api_url, customer.api_key, group["id"], timeout=PATIENCE_S) as client:
            old = append(client, b"old", OLD)
            assert old == list(range(OLD))
            # Entries of a lost log that no server ever reported are not billed; these were reported.
            assert settled(customer, group["id"], OLD) == OLD

            for name in SERVERS:
                own_stack.kill_server(name)
            for name in SERVERS:
                wipe(own_stack, name)
                own_stack.restart_server(name)
            wait_for("the group to be lost", lambda: customer.get(path)["status"] == "lost")
            lost = customer.get(path)
            with pytest.raises(Refused) as no_handle:
                customer.get(f"{path}/handle")
            assert (no_handle.value.status, no_handle.value.problem["code"]) == (409, "group_lost")
            with pytest.raises(AppendRefused, match="group_lost") as refused:
                client.append(b"while it is lost")
            assert "/reset" in refused.value.action
            assert not refused.value.retryable

            begun = customer.post(f"{path}/reset", {"epoch": lost["epoch"]})
            assert (begun["status"], begun["sla"], begun["price"]) == ("active", lost["sla"], lost["price"])
            assert begun["epoch"] > lost["epoch"]
            again = customer.post(f"{path}/reset", {"epoch": lost["epoch"]})
            assert again["epoch"] == begun["epoch"], "asked twice, done once"

            # The same client continues with its old handle.
            new = append(client, b"new", NEW)
            first = new[0]
            assert new == list(range(first, first + NEW))
            assert first >= 1 << 40, "no offset is used twice"
            status = client.status()
            assert status.epoch >= begun["epoch"]
            # A reader that found the head away may still ask a follower, which learns of commits a moment later.
            wait_for("the new log's end", lambda: client.status().commit_offset == first + NEW)
            assert client.status().trim_offset == first
            assert [entry.data for entry in client.read(first).entries] == [b"new %d" % n for n in range(NEW)]
            for offset in (0, OLD - 1, first - 1):
                with pytest.raises(Trimmed):
                    client.read(offset)

            billed = OLD + NEW
            assert settled(customer, group["id"], billed) == billed, "both logs' entries, and not the gap between them"
            assert client.append(b"one more") == first + NEW
            assert settled(customer, group["id"], billed + 1) == billed + 1, "later reports count each entry once"
        used = customer.usage(group["id"], datetime.now(UTC) - timedelta(hours=1))
        assert int(used["committed_entries"]) == billed + 1
        with pytest.raises(Refused) as not_lost:
            customer.post(f"{path}/reset", {"epoch": begun["epoch"]})
        assert not_lost.value.problem["code"] == "group_not_lost"
        assert handle["epoch"] < customer.get(f"{path}/handle")["epoch"]
        assert own_stack.dead() == []


def append(client: sync.Client, word: bytes, count: int) -> list[int]:
    """Offsets of `count` numbered entries."""
    futures = [client.submit(b"%s %d" % (word, number)) for number in range(count)]
    return [future.result(timeout=PATIENCE_S) for future in futures]


def settled(customer: Customer, group_id: str, expected: int) -> int:
    """The number of billed entries, once it is as expected or the time for that is over."""
    return billed_entries(customer.settled_invoice(group_id, expected, PATIENCE_S), group_id)


def wipe(stack: Stack, server: str) -> None:
    """Wipe its disk except its identity."""
    folder = stack.layout.server(server)
    for part in ("journal", "groups"):
        shutil.rmtree(folder / part)


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited in vain for {what}")
        time.sleep(0.1)
