"""Terraform's whole story on one machine: a fleet of processes and a customer's group, from nothing to nothing."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from quorate.group import connect_group
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.identity import Identity
from quorate_local.options import REPOSITORY
from terraform_runner import Operator, Terraform, runner

TERRAFORM = REPOSITORY / "infra" / "terraform"
APPEND_TIMEOUT_S = 30.0
SILENCE_MAX_S = 20.0  # between two acknowledged appends, on a shared machine
PROGRESS_WAIT_S = 30.0
STORY_S_MAX = 180.0
RESOURCES = ("cpu", "network", "storage_io", "shard")


@dataclass
class Appending:
    """A customer that appends numbers one after the other, in a thread, until the end of the `with`."""

    api_url: str
    secret: str
    group_id: str
    acked: list[int] = field(default_factory=list)
    longest_silence_s: float = 0.0
    failure: BaseException | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Appending:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(2 * APPEND_TIMEOUT_S)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure

    def progress(self, what: str) -> None:
        """Wait until some more appends are acknowledged."""
        seen, deadline = len(self.acked), time.monotonic() + PROGRESS_WAIT_S
        while len(self.acked) < seen + 20:
            assert self.failure is None, (what, self.failure)
            assert time.monotonic() < deadline, f"{what}: no appends since {seen}"
            time.sleep(0.05)

    def _run(self) -> None:
        try:
            asyncio.run(self._append())
        except BaseException as error:  # raised again in the test's thread
            self.failure = error

    async def _append(self) -> None:
        number = 0
        async with await connect_group(self.api_url, self.secret, self.group_id, timeout=APPEND_TIMEOUT_S) as client:
            last = time.monotonic()
            while not self._stop.is_set():
                await client.append(b"%d" % number)
                now = time.monotonic()
                self.longest_silence_s, last = max(self.longest_silence_s, now - last), now
                self.acked.append(number)
                number += 1
                await asyncio.sleep(0.005)


@dataclass
class Fleet:
    """The servers that Terraform started, as the test sees them."""

    state_dir: Path
    stack: Stack

    def pids(self) -> dict[str, int]:
        found = {}
        for folder in (self.state_dir / "local").iterdir():
            ready = json.loads((folder / "data" / "ready.json").read_text())
            found[folder.name] = int(ready["pid"])
        return found

    def processes(self) -> list[str]:
        """Command lines that name the folder: servers and their supervisors."""
        lines = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(self.state_dir) in line and "terraform " not in line:
                lines.append(line)
        return lines

    def events(self, kinds: set[str]) -> list[tuple[str, int]]:
        answer = httpx2.get(
            f"http://{self.stack.addresses['coordinator_http']}/v1/events",
            params={"after": 0, "wait_ms": 0},
            headers={"Authorization": f"Bearer {self.stack.admin_token()}"},
            timeout=15,
        )
        assert answer.status_code == 200, answer.text
        return [(event["kind"], event["server_id"]) for event in answer.json()["events"] if event["kind"] in kinds]


@pytest.fixture
def stack() -> Iterator[Stack]:
    """Everything except servers."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not in PATH")
    stack = Stack(StackOptions.from_environment(state=REPOSITORY / "build" / "e2e" / "terraform-story", servers=0))
    stack.wipe()
    with stack:
        yield stack


@pytest.fixture
def terraform(stack: Stack, tmp_path: Path) -> Iterator[tuple[Terraform, Customer, Operator]]:
    for part in ("envs/local", "modules"):
        shutil.copytree(TERRAFORM / part, tmp_path / part, ignore=shutil.ignore_patterns("tests"))
    token = (stack.options.state / "secrets" / "operator-token").read_text().strip()
    with Customer(stack.api_url, "story") as customer:
        key = customer.post("/v1/organization/keys", {"name": "terraform"})["secret"]
        terraform = runner(tmp_path / "envs" / "local", stack.api_url, key, token)
        (terraform.folder / "stack.auto.tfvars").write_text(
            f'coordinator = "{stack.addresses["coordinator_control"]}"\n'
            f'server_binary = "{stack.options.bin_dir / "quorate-replica"}"\n'
            f'state_dir = "{tmp_path / "servers"}"\n'
            f'redis_url = "{stack.addresses["redis"]}"\n'
        )
        terraform.run("get")
        yield terraform, customer, Operator(stack.api_url, token)


def test_from_nothing_to_nothing(stack: Stack, terraform: tuple[Terraform, Customer, Operator], tmp_path: Path) -> None:
    run, customer, operator = terraform
    fleet = Fleet(tmp_path / "servers", stack)
    began = time.monotonic()

    run.apply()
    assert _alive(operator) == ["s1", "s2", "s3", "s4"]
    assert len(fleet.processes()) == 8, "a server and its supervisor, four times"
    group_id, secret = run.output("group_id"), run.output("api_key")
    with Appending(stack.api_url, secret, group_id) as appending:
        appending.progress("a group by Terraform")
        run.run("plan", "-detailed-exitcode")  # exit code 0: nothing has drifted
        _kill_and_heal(run, customer, operator, fleet, appending, group_id)
        _grow_and_shrink(run, operator, fleet, appending)
        _lose_one_and_shrink(run, operator, fleet, appending)
        _resize(run, customer, appending, group_id)
    assert appending.longest_silence_s < SILENCE_MAX_S
    assert _read(stack.api_url, secret, group_id, len(appending.acked)) == appending.acked

    pids = [Identity.of(pid) for pid in fleet.pids().values()]
    run.run("destroy", "-auto-approve")
    assert not [each for each in pids if each.is_alive()]
    assert fleet.processes() == []
    assert not fleet.state_dir.joinpath("local").exists()
    assert operator.servers() == {}, "no server is registered any more, and none counts as failed"
    assert [token for token in operator.join_tokens() if token["state"] == "outstanding"] == []
    assert httpx2.get(f"{stack.api_url}/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    _no_row_is_active(stack)
    assert time.monotonic() - began < STORY_S_MAX


def _kill_and_heal(
    run: Terraform, customer: Customer, operator: Operator, fleet: Fleet, appending: Appending, group_id: str
) -> None:
    """The group's head dies. The group continues without; the plan shows the missing server, the apply restores it."""
    head = customer.get(f"/v1/groups/{group_id}/placement")["replicas"][0]["server_name"]
    victim = Identity.of(fleet.pids()[head])
    assert victim.send(signal.SIGKILL)
    appending.progress("a dead head")
    said = run.run("plan", "-detailed-exitcode", expect=2)
    assert f'module.machines.quorate_local_server.servers["{head}"] will be created' in said
    assert "1 to add" in said
    run.apply()
    assert _alive(operator) == ["s1", "s2", "s3", "s4"]
    assert fleet.pids()[head] != victim.pid
    run.run("plan", "-detailed-exitcode")
    appending.progress("a healed fleet")


def _grow_and_shrink(run: Terraform, operator: Operator, fleet: Fleet, appending: Appending) -> None:
    run.apply("-var=server_count=5")
    assert _alive(operator) == ["s1", "s2", "s3", "s4", "s5"]
    numbers = {server["server_id"] for name, server in operator.servers().items() if name in ("s4", "s5")}
    appending.progress("five servers")
    leaving = [Identity.of(fleet.pids()[name]) for name in ("s4", "s5")]
    failed = fleet.events({"server_failed"})
    run.apply("-var=server_count=3")
    assert not any(each.is_alive() for each in leaving)
    assert _alive(operator) == ["s1", "s2", "s3"]
    leaving_in_order = ["server_draining", "server_drained", "server_stopped", "server_forgotten"]
    for number in numbers:
        seen = [kind for kind, server in fleet.events(set(leaving_in_order)) if server == number]
        assert seen == leaving_in_order, "drained before its process ended, and removed then"
    assert fleet.events({"server_failed"}) == failed, "no server counted as failed"
    appending.progress("three servers")


def _lose_one_and_shrink(run: Terraform, operator: Operator, fleet: Fleet, appending: Appending) -> None:
    """A server to be removed dies before: a dead server is not drained, and does not block the others."""
    run.apply("-var=server_count=4")
    victim = Identity.of(fleet.pids()["s4"])
    assert victim.send(signal.SIGKILL)
    run.apply("-var=server_count=3")
    assert not victim.is_alive()
    assert sorted(operator.servers()) == ["s1", "s2", "s3"], "it no longer counts as failed"
    shutil.rmtree(fleet.state_dir / "local" / "s4")  # by hand: Terraform knew of no process any more
    appending.progress("three servers again")


def _resize(run: Terraform, customer: Customer, appending: Appending, group_id: str) -> None:
    """Resize in place during appends; the plan refuses too large an SLA, and nothing changes."""
    before = customer.get(f"/v1/groups/{group_id}")
    most = _most(customer, group_id, before["sla"])
    wanted = most * 3 // 4  # beside its own reservation it would not fit a second time
    resized = ("-var=server_count=3", f"-var=rate_per_s={wanted}")
    said = run.run("plan", *resized, "-detailed-exitcode", expect=2)
    assert "quorate_group.orders will be updated in-place" in said
    run.apply(*resized)
    after = customer.get(f"/v1/groups/{group_id}")
    assert (after["sla"]["rate_per_s"], after["epoch"]) == (wanted, before["epoch"] + 1)
    assert after["price"]["hourly_micros"] > before["price"]["hourly_micros"]
    run.run("plan", *resized, "-detailed-exitcode")
    appending.progress("a larger group")
    most = _most(customer, group_id, after["sla"])
    said = run.run("plan", "-var=server_count=3", f"-var=rate_per_s={most + 1}", expect=1)
    assert "The fleet cannot promise this SLA now" in said
    assert [f"Scarce: {resource}." in said for resource in RESOURCES].count(True) == 1, said
    assert f"An SLA that would fit now: rate_per_s = {most}." in said
    assert "The group is unchanged." in said
    assert "rate_per_s = var.rate_per_s" in said, "the attribute at fault is shown"
    assert customer.get(f"/v1/groups/{group_id}")["sla"] == after["sla"]
    appending.progress("a refused resize")


def _most(customer: Customer, group_id: str, sla: dict[str, Any]) -> int:
    """The largest rate that the group could have in its place."""
    asked = {**_asked(sla), "rate_per_s": 50_000_000, "replaces_group_id": group_id}
    return int(customer.post("/v1/quotes", asked)["refusal"]["largest_sla_that_fits"]["rate_per_s"])


def _alive(operator: Operator) -> list[str]:
    return sorted(name for name, server in operator.servers().items() if server["alive"])


def _asked(sla: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sla.items() if value is not None}


def _read(api_url: str, secret: str, group_id: str, count: int) -> list[int]:
    async def read() -> list[int]:
        found: list[int] = []
        async with await connect_group(api_url, secret, group_id, timeout=APPEND_TIMEOUT_S) as client:
            while len(found) < count:
                entries = (await client.read(len(found))).entries
                assert entries, f"the log ends at {len(found)}, {count} were acknowledged"
                found += [int(bytes(entry.data)) for entry in entries]
        return found

    return asyncio.run(read())


def _no_row_is_active(stack: Stack) -> None:
    with psycopg.connect(stack.addresses["postgres"]) as connection:
        for table, condition in (
            ("groups", "deleted_at IS NULL OR status <> 'deleted' OR resize IS NOT NULL"),
            ("projects", "deleted_at IS NULL AND name <> 'default'"),
            ("api_keys", "revoked_at IS NULL AND name = 'app'"),
        ):
            rows = connection.execute(f"SELECT * FROM {table} WHERE {condition}").fetchall()  # type: ignore[call-overload]
            assert rows == [], table
