"""Looking into a log: pages by offset and by time. The real servers are asked in infra/e2e/test_entries.py."""

import uuid
from dataclasses import dataclass, field

import pytest
from quorate import Entry
from quorate.client import GroupStatus, ReadResult

from quorate_api import limits
from quorate_api.entries import log
from quorate_api.errors import Code, Problem
from quorate_api.readers import Readers
from support.customer import Customer, bearer, problem


@dataclass
class KnownLog:
    """A log in memory, by the contract of the SDK's client. Entry n was ordered at second `times[n]`."""

    times: list[int]
    trimmed: int = 0
    reads: list[int] = field(default_factory=list)

    async def status(self) -> GroupStatus:
        end = len(self.times)
        return GroupStatus("head", "active", 1, end, end, self.trimmed, end, 1)

    async def read(self, offset: int, *, max_entries: int, max_bytes: int, wait: float) -> ReadResult:
        assert self.trimmed <= offset <= len(self.times)
        assert offset < len(self.times) or wait > 0, "nothing is there, and nothing is waited for"
        self.reads.append(offset)
        found = list(range(offset, len(self.times)))[:max_entries]
        entries = [Entry(n, b"x", self.times[n] * 1_000_000) for n in found]
        return ReadResult(entries, offset + len(entries), len(self.times), self.trimmed)


def offsets(page: log.Page) -> list[int]:
    return [entry.offset for entry in page.entries]


async def test_the_newest_entries() -> None:
    page = await log.newest(KnownLog(list(range(10))), 3)
    assert offsets(page) == [7, 8, 9]
    assert page[1:] == (0, 10, 10)
    assert offsets(await log.newest(KnownLog(list(range(10)), trimmed=8), 3)) == [8, 9]
    assert offsets(await log.newest(KnownLog([]), 3)) == []


async def test_entries_from_an_offset() -> None:
    known = KnownLog(list(range(10)), trimmed=4)
    assert offsets(await log.from_offset(known, 6, 2, 0.0)) == [6, 7]
    assert offsets(await log.from_offset(known, 0, 2, 0.0)) == [4, 5], "the first that is still there"
    beyond = await log.from_offset(known, 50, 2, 0.0)
    assert (offsets(beyond), beyond.next_offset) == ([], 10)
    assert (await log.from_offset(known, 10, 2, 1.0)).next_offset == 10, "it waited for the next entry"


@pytest.mark.parametrize(("second", "first"), [(0, 2), (4, 2), (5, 2), (6, 5), (7, 5), (8, 7), (99, 8)])
async def test_entries_from_a_time(second: int, first: int) -> None:
    known = KnownLog([1, 2, 5, 5, 5, 7, 7, 8], trimmed=2)
    page = await log.from_time(known, second * 1_000_000, 1)
    assert page.next_offset == min(first + 1, 8)
    assert offsets(page) == ([first] if first < 8 else [])


async def test_a_time_is_found_in_few_reads() -> None:
    known = KnownLog(list(range(1_000_000)))
    assert offsets(await log.from_time(known, 765_432 * 1_000_000, 1)) == [765_432]
    assert len(known.reads) <= 22


async def test_only_who_may_read_sees_entries(alice: Customer, bob: Customer) -> None:
    group = await alice.create_group("orders")
    path = f"/v1/groups/{group['id']}/entries"
    appends = await alice.create_key(scopes=["append"])
    problem(await alice.api.get(path, headers=bearer(appends)), 403, "permission_denied")
    other = await alice.create_key(scopes=["read:invoices"])
    problem(await alice.api.get(path, headers=bearer(other)), 404, "not_found")
    problem(await bob.request("GET", path), 404, "not_found")
    problem(await alice.request("GET", path, params={"partition": 1}), 422, "validation_failed")
    problem(
        await alice.request("GET", path, params={"offset": 1, "at": "2026-01-01T00:00:00Z"}), 422, "validation_failed"
    )


@pytest.mark.parametrize(
    "at",
    [
        "0001-01-01T00:00:00", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1999-12-31T23:59:59Z",
        "2200-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "2026-01-01T00:00:00", "2026-01-01", "1", "yesterday",
    ],
)  # fmt: skip
async def test_times_without_a_zone_or_far_away_are_refused(alice: Customer, at: str) -> None:
    group = await alice.create_group("orders")
    answer = await alice.request("GET", f"/v1/groups/{group['id']}/entries", params={"at": at})
    assert [each["field"] for each in problem(answer, 422, "validation_failed")["errors"]] == ["at"]


async def test_servers_that_do_not_answer_are_told_of(alice: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES_TIMEOUT_S", 0.3)
    group = await alice.create_group("orders")
    answer = await alice.request("GET", f"/v1/groups/{group['id']}/entries")
    assert "servers" in problem(answer, 409, "group_not_ready")["detail"]


def test_readers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES_READERS_PER_ORGANIZATION_MAX", 1)
    monkeypatch.setattr(limits, "ENTRIES_READERS_MAX", 2)
    readers, some = Readers(), [uuid.uuid4() for _ in range(3)]
    with readers.enter(some[0]):
        with pytest.raises(Problem) as refused, readers.enter(some[0]):
            pass
        assert refused.value.code is Code.RATE_LIMITED
        with readers.enter(some[1]), pytest.raises(Problem) as refused, readers.enter(some[2]):
            pass
        assert refused.value.code is Code.OVERLOADED
    with readers.enter(some[0]):
        pass
