"""Links over one-sided writes: servers are killed in the middle; machines that have no such way use sockets."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

import quorate
from quorate import sync
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions, components
from quorate_local.components import binary

SLA = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 2_000}
KILLS = 4
WAIT_S = 30.0


class Appender:
    """Appends numbered entries, one after the other, and notes which were acknowledged."""

    def __init__(self, customer: Customer, group: str) -> None:
        self._client = sync.connect_group(customer.api_url, customer.api_key, group)
        self.acked: list[tuple[int, int]] = []  # number, offset
        self.number = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait_for(self, more: int) -> None:
        """So many more are acknowledged."""
        wanted, until = len(self.acked) + more, time.monotonic() + WAIT_S
        while len(self.acked) < wanted:
            assert time.monotonic() < until, f"only {len(self.acked)} of {wanted} appends in {WAIT_S:.0f} s"
            time.sleep(0.01)

    def stop(self) -> list[bytes]:
        """The whole log, as it is read back."""
        self._stopping.set()
        self._thread.join(WAIT_S)
        entries: list[bytes] = []
        end = self._client.status().commit_offset
        while len(entries) < end:
            entries += [entry.data for entry in self._client.read(len(entries)).entries]
        self._client.close()
        return entries

    def check(self, entries: list[bytes]) -> None:
        """Each acknowledged entry is at its offset, and none is there twice."""
        for number, offset in self.acked:
            assert entries[offset] == str(number).encode(), f"entry {number} is not at {offset}"
        assert not [entry for entry, times in Counter(entries).items() if times > 1]

    def _run(self) -> None:
        while not self._stopping.is_set():
            with suppress(quorate.AppendUnknown):  # it may be there, and once at most
                self.acked.append((self.number, self._client.append(str(self.number).encode())))
            self.number += 1


@contextmanager
def running(state: Path, monkeypatch: pytest.MonkeyPatch, provider: str) -> Iterator[tuple[Stack, Customer, str]]:
    monkeypatch.setenv("QUORATE_TRANSPORT", "ofi")
    monkeypatch.setenv("QUORATE_OFI_PROVIDER", provider)
    with Stack(StackOptions(state=state, servers=4)) as stack, Customer(stack.api_url, "rings") as customer:
        yield stack, customer, str(customer.create_group("a", SLA)["id"])


def said(stack: Stack, words: str) -> list[str]:
    """Servers whose logs have these words."""
    names = stack.options.server_names()
    return [name for name in names if words in stack.layout.log(name).read_text(errors="replace")]


def told(stack: Stack) -> list[dict[str, str | None]]:
    """How servers say that their links go."""
    secrets = components.Secrets(stack.layout)
    answer = httpx2.get(
        f"http://{stack.leader_http()}/v1/servers",
        headers={"Authorization": f"Bearer {secrets.admin_token.read_text().strip()}"},
    )
    return [server["links"] for server in answer.raise_for_status().json()]


def test_servers_are_killed_in_the_middle_of_writes(own_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(own_state, monkeypatch, "shm") as (stack, customer, group):
        appender = Appender(customer, group)
        appender.wait_for(200)
        assert len(said(stack, "the link goes by one-sided writes")) >= SLA["replication_degree"]
        assert told(stack) == [{"transport": "ofi", "provider": "shm"}] * 4
        for _ in range(KILLS):
            address = customer.placement(group)["replicas"][0]["address"]
            victim = stack.servers_by_address()[address]
            stack.kill_server(victim)
            appender.wait_for(100)
            stack.restart_server(victim)
            appender.wait_for(100)
        appender.check(appender.stop())
        assert not said(stack, "panicked at")


def test_a_machine_without_the_provider_uses_sockets_and_says_so(
    own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(own_state, monkeypatch, "efa") as (stack, customer, group):
        appender = Appender(customer, group)
        appender.wait_for(100)
        assert len(said(stack, "no one-sided writes: links go by tcp")) == len(stack.options.server_names())
        assert {(links["transport"], links["provider"]) for links in told(stack)} == {("tcp", "efa")}
        assert all("efa" in links["selftest"] for links in told(stack)), "the reason is told"
        appender.check(appender.stop())


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_a_machine_is_tested_before_servers_rely_on_it(provider: str, tmp_path: Path) -> None:
    command = [binary(StackOptions(), "quorate-replica"), "selftest", "ofi", "--provider", provider]
    command += ["--out", str(tmp_path / "result.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S * 2, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^{provider} +ok: ", done.stdout, re.MULTILINE), done.stdout
    assert "a writer is shut out" in done.stdout
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["provider"], result["is_ok"]) == (provider, True)


def test_a_server_does_without_where_the_test_failed(own_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = {"provider": "shm", "is_ok": False, "words": "FAILED: a stream stands still"}
    own_state.parent.mkdir(parents=True, exist_ok=True)
    file = own_state.parent / f"{own_state.name}-ofi.json"
    file.write_text(json.dumps(result))
    monkeypatch.setenv("QUORATE_OFI_SELFTEST", str(file))
    with running(own_state, monkeypatch, "shm") as (stack, _, _):
        assert told(stack) == [{"transport": "tcp", "provider": "shm", "selftest": result["words"]}] * 4
        assert not said(stack, "the link goes by one-sided writes")
    file.unlink()
