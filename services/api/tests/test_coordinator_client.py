"""The client of several coordinators, of which one leads."""

from collections import Counter
from collections.abc import Callable

import httpx2
import pytest

from quorate_api import limits
from quorate_api.coordinator.addresses import Addresses
from quorate_api.coordinator.client import Coordinator, CoordinatorUnavailable

ONE, TWO, THREE = "http://one:7401", "http://two:7401", "http://three:7401"
Answer = Callable[[httpx2.Request], httpx2.Response]


def not_leader(leader: str | None) -> Answer:
    body = {"code": "not_leader", "detail": "elsewhere", **({} if leader is None else {"leader": leader})}
    return lambda _: httpx2.Response(503, json=body)


def leads(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json=[])


def away(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("nobody listens", request=request)


def breaks(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ReadError("it ended", request=request)


def is_slow(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ReadTimeout("no answer", request=request)


class Fleet:
    """Coordinators that answer in their own ways. `calls`: how often each was called."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.calls: Counter[str] = Counter()

    def client(self, urls: list[str]) -> Coordinator:
        return Coordinator(urls, "a-token", transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        url = f"http://{request.url.host}:{request.url.port}"
        assert request.headers["authorization"] == "Bearer a-token"
        self.calls[url] += 1
        return self.answers[url](request)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COORDINATOR_FIND_PAUSE_S", 0.001)
    monkeypatch.setattr(limits, "COORDINATOR_FIND_S", 0.1)


async def test_the_named_leader_is_called_and_remembered() -> None:
    fleet = Fleet({ONE: not_leader("three:7401"), TWO: leads, THREE: leads})
    client = fleet.client([ONE, TWO, THREE])
    for _ in range(3):
        assert await client.servers() == []
    assert fleet.calls == {ONE: 1, THREE: 3}


async def test_one_that_is_away_is_passed_over() -> None:
    fleet = Fleet({ONE: away, TWO: not_leader(None), THREE: leads})
    assert await fleet.client([ONE, TWO, THREE]).servers() == []
    assert fleet.calls == {ONE: 1, TWO: 1, THREE: 1}


async def test_an_election_is_waited_for_but_not_for_ever() -> None:
    fleet = Fleet({ONE: not_leader(None), TWO: not_leader(None)})
    client = fleet.client([ONE, TWO])
    with pytest.raises(CoordinatorUnavailable, match="no coordinator leads") as caught:
        await client.servers()
    assert not caught.value.sent
    assert fleet.calls[ONE] > 3
    fleet.answers[TWO] = leads
    assert await client.servers() == []


async def test_the_token_goes_to_no_address_that_the_operator_did_not_give() -> None:
    fleet = Fleet({ONE: not_leader("elsewhere:7401"), TWO: leads})
    assert await fleet.client([ONE, TWO]).servers() == []
    assert fleet.calls == {ONE: 1, TWO: 1}


async def test_a_call_that_may_have_been_done_is_repeated_elsewhere_only_if_it_may_be() -> None:
    fleet = Fleet({ONE: breaks, TWO: leads})
    with pytest.raises(CoordinatorUnavailable) as caught:
        await fleet.client([ONE, TWO]).join_token(60, None, auxiliary=False)
    assert caught.value.sent
    assert await fleet.client([ONE, TWO]).servers() == []
    fleet = Fleet({ONE: breaks, TWO: lambda _: httpx2.Response(204)})
    await fleet.client([ONE, TWO]).forget_server(7)
    assert fleet.calls == {ONE: 1, TWO: 1}


async def test_one_that_does_not_answer_in_time_costs_one_call() -> None:
    fleet = Fleet({ONE: is_slow, TWO: lambda _: httpx2.Response(204)})
    client = fleet.client([ONE, TWO])
    with pytest.raises(CoordinatorUnavailable) as caught:
        await client.forget_server(7)
    assert caught.value.sent
    await client.forget_server(7)
    assert fleet.calls == {ONE: 1, TWO: 1}


async def test_a_single_one_is_asked_twice_at_most() -> None:
    fleet = Fleet({ONE: breaks})
    with pytest.raises(CoordinatorUnavailable):
        await fleet.client([ONE]).forget_server(7)
    fleet.answers[ONE] = away
    with pytest.raises(CoordinatorUnavailable) as caught:
        await fleet.client([ONE]).forget_server(7)
    assert not caught.value.sent
    assert fleet.calls == {ONE: 3}


def test_another_call_may_have_noticed_before() -> None:
    addresses = Addresses([ONE, TWO, THREE])
    addresses.failed(ONE)
    addresses.failed(ONE)
    assert addresses.current == TWO
    addresses.told(TWO, "one:7401")
    assert addresses.current == ONE
    addresses.told(ONE, "one:7401")
    assert addresses.current == TWO
    with pytest.raises(ValueError, match="coordinator"):
        Addresses([])
