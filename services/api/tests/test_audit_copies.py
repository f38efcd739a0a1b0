"""Copies of audit events: which are waiting, and what a comparison finds. The real group is in infra/e2e."""

from dataclasses import dataclass, field
from typing import Any, cast

import psycopg
import pytest
from quorate import Client, Entry
from quorate.client import GroupStatus, ReadResult
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.audit import comparison, copies
from quorate_api.audit.chain import Linked
from quorate_api.audit.copies import Comparison, Copy
from quorate_api.audit.group import AuditGroup
from quorate_api.worker.audit_copies import Copier
from support.customer import Customer


@dataclass
class KnownGroup:
    """A group in memory, by the contract of the SDK's client. `failing`: the number of appends that fail next."""

    entries: list[bytes] = field(default_factory=list)
    failing: int = 0

    async def append(self, data: bytes) -> int:
        if self.failing:
            self.failing -= 1
            raise OSError("the group does not answer")
        self.entries.append(data)
        return len(self.entries) - 1

    async def close(self, *, drain: bool) -> None:
        pass

    async def status(self) -> GroupStatus:
        end = len(self.entries)
        return GroupStatus("head", "active", 1, end, end, 0, end, 1)

    async def read(self, offset: int, *, max_entries: int) -> ReadResult:
        some = self.entries[offset : offset + max_entries]
        return ReadResult(
            [Entry(offset + n, data, 0) for n, data in enumerate(some)], offset + len(some), len(self.entries), 0
        )


def copier(engine: AsyncEngine, group: KnownGroup, monkeypatch: pytest.MonkeyPatch) -> Copier:
    async def connect(_self: AuditGroup, **_: Any) -> Client:
        return cast(Client, group)

    monkeypatch.setattr(AuditGroup, "connect", connect)
    return Copier(engine, AuditGroup("", "", ""))


async def test_each_event_is_copied_once_and_in_order(
    alice: Customer, bob: Customer, worker_engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = KnownGroup()
    worker = copier(worker_engine, group, monkeypatch)
    await alice.create_key()
    await bob.create_key()
    assert await worker.run() == 4
    assert await worker.run() == 0
    await alice.create_group()
    assert await worker.run() == 1
    found = [copies.of_entry(data) for data in group.entries]
    mine = [copy.linked.seq for copy in found if copy is not None and copy.log == alice.organization_id]
    assert mine == [1, 2, 3]
    compared = await comparison.compare(worker_engine, cast(Client, group))
    assert (compared.copies, compared.logs, compared.differences) == (5, 2, [])


async def test_a_group_that_is_away_loses_nothing(
    alice: Customer, worker_engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = KnownGroup(failing=1)
    await alice.create_key()
    worker = copier(worker_engine, group, monkeypatch)
    with pytest.raises(OSError, match="the group for audit logs"):
        await worker.run()
    assert await worker.run() == 2
    compared = await comparison.compare(worker_engine, cast(Client, group))
    assert compared.differences == [], "one of them may stand twice"


async def test_a_comparison_finds_what_the_databases_owner_has_changed(
    alice: Customer, bob: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    group = KnownGroup()
    await alice.create_key()
    await bob.create_key()
    await copier(worker_engine, group, monkeypatch).run()
    owner.execute("ALTER TABLE audit_events DISABLE TRIGGER ALL")
    owner.execute(
        "UPDATE audit_events SET event = replace(event, 'ci', 'cj') WHERE seq = 2 AND organization_id = %s",
        (alice.organization_id,),
    )
    owner.execute("DELETE FROM audit_events WHERE seq = 1 AND organization_id = %s", (bob.organization_id,))
    await alice.create_key()
    owner.execute("DELETE FROM uncopied_events")
    found = (await comparison.compare(worker_engine, cast(Client, group))).differences
    assert sorted(found) == sorted(
        [
            f"{alice.organization_id}: event 2 is another one in the database",
            f"{bob.organization_id}: event 1 is not in the database",
            f"{alice.organization_id}: events 3 to 3 are not in the group",
        ]
    )


def copy(seq: int, event: str = "{}", log: str = "a") -> Copy:
    return Copy(log, Linked(seq, event, bytes(32)))


def compared(read: list[Copy | None], stored: list[Copy], erased: frozenset[str] = frozenset()) -> list[str]:
    found = Comparison()
    found.take(read, {each.name: each.linked for each in stored}, erased)
    return found.differences


def test_copies_of_erased_organizations_and_repeated_ones_are_no_difference() -> None:
    assert compared([copy(1), copy(2)], [], frozenset({"a"})) == []
    assert compared([copy(1), copy(1), copy(2)], [copy(1), copy(2)]) == []
    assert compared([copy(5), copy(6)], [copy(5), copy(6)]) == [], "the group has discarded the first ones"


def test_gaps_and_other_entries_are_differences() -> None:
    assert compared([copy(1), copy(4)], [copy(1), copy(4)]) == ["a: events 2 to 3 are not in the group"]
    assert compared([None], []) == ["an entry of the group is no copy of an event"]
    assert copies.of_entry(b"nonsense") is None
    assert copies.of_entry(b'{"log":"a","seq":1}') is None
    assert copies.of_entry(copies.as_entry(copy(3, '{"ß":1}'))) == copy(3, '{"ß":1}')
