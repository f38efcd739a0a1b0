"""Limits: nobody locks others out, all processes count together, and Redis may be away."""

import httpx2
import pytest
from limits import parse
from quorate_harness.figures import FOLDER, Figure, keep
from redis.asyncio import Redis

from quorate_api import limits
from quorate_api.errors import Problem
from quorate_api.http.known_keys import KnownKeys
from quorate_api.http.rates import Counter, Rates
from quorate_api.http.services import Services
from quorate_api.security import api_keys
from support.customer import PASSWORD, Customer, problem


@pytest.fixture
def addresses(services: Services) -> None:
    """Requests come from the address that X-Forwarded-For names."""
    services.settings = services.settings.model_copy(update={"trusted_proxies": 1})


async def guess(api: httpx2.AsyncClient, email: str, address: str) -> httpx2.Response:
    body = {"email": email, "password": "a wrong password"}
    answer = await api.post("/v1/login", json=body, headers={"X-Forwarded-For": address})
    api.cookies.clear()
    return answer


async def test_failures_elsewhere_lock_nobody_out(addresses: None, api: httpx2.AsyncClient, alice: Customer) -> None:
    """`lockout_of_others`: somebody guesses from many addresses; the person logs in from each of theirs."""
    body = {"email": alice.email, "password": PASSWORD}

    async def log_in(address: str, device: str = "") -> httpx2.Response:
        cookies = {"Cookie": f"quorate_device={device}"} if device else {}
        answer = await api.post("/v1/login", json=body, headers={"X-Forwarded-For": address, **cookies})
        api.cookies.clear()
        return answer

    known = await log_in("203.0.113.1")
    device = known.cookies["quorate_device"]
    for number in range(20):
        for _ in range(10):
            problem(await guess(api, alice.email, f"198.51.100.{number}"), 401, "credentials_invalid")
        problem(await guess(api, alice.email, f"198.51.100.{number}"), 429, "rate_limited")
    refused = [
        answer.text
        for answer in [await log_in("203.0.113.1"), await log_in("203.0.113.99"), await log_in("203.0.113.7", device)]
        if answer.status_code != 200
    ]
    note = "of 3 log-ins of a person whose account had 200 failures from 20 other addresses"
    figure = Figure("lockout_of_others", len(refused), "log-ins", 0, note=note)
    keep([figure], "make test", FOLDER / "access.jsonl")
    assert refused == []


async def test_a_known_device_logs_in_while_the_account_is_attacked_from_everywhere(
    addresses: None, api: httpx2.AsyncClient, alice: Customer, services: Services
) -> None:
    body = {"email": alice.email, "password": PASSWORD}
    device = (await api.post("/v1/login", json=body)).cookies["quorate_device"]
    api.cookies.clear()
    for number in range(300):
        await services.rates.failed_login(alice.email, f"2001:db8::{number:x}", None)
    problem(await api.post("/v1/login", json=body, headers={"X-Forwarded-For": "203.0.113.7"}), 429, "rate_limited")
    for cookie, status in ((device, 200), (device[:-1] + ("0" if device[-1] != "0" else "1"), 429), ("x", 429)):
        headers = {"X-Forwarded-For": "203.0.113.7", "Cookie": f"quorate_device={cookie}"}
        answer = await api.post("/v1/login", json=body, headers=headers)
        assert answer.status_code == status, answer.text
        api.cookies.clear()
    other = {"email": "bob@example.com", "password": PASSWORD}
    headers = {"X-Forwarded-For": "203.0.113.7", "Cookie": f"quorate_device={device}"}
    problem(await api.post("/v1/login", json=other, headers=headers), 401, "credentials_invalid")


async def test_invalid_keys_are_limited_before_the_database(
    addresses: None, api: httpx2.AsyncClient, alice: Customer
) -> None:
    async def call(key: str, address: str) -> httpx2.Response:
        return await api.get("/v1/me", headers={"Authorization": f"Bearer {key}", "X-Forwarded-For": address})

    amount = parse(limits.INVALID_KEYS_PER_ADDRESS).amount
    for _ in range(amount):
        problem(await call(api_keys.generate(), "198.51.100.1"), 401, "credentials_invalid")
    problem(await call(api_keys.generate(), "198.51.100.1"), 429, "rate_limited")
    key = await alice.create_key()
    problem(await call(key["secret"], "198.51.100.1"), 429, "rate_limited")
    assert (await call(key["secret"], "198.51.100.2")).status_code == 200
    assert (await call(key["secret"], "198.51.100.1")).status_code == 200, "it is known, and no guess"


async def test_a_revoked_key_in_use_hinders_nobody_at_its_address(
    addresses: None, api: httpx2.AsyncClient, alice: Customer
) -> None:
    """Its program asks again and again. A key that the API has never met is still served."""

    async def call(key: str) -> httpx2.Response:
        return await api.get("/v1/me", headers={"Authorization": f"Bearer {key}", "X-Forwarded-For": "198.51.100.1"})

    revoked = await alice.create_key()
    assert (await call(revoked["secret"])).status_code == 200
    assert (await alice.request("DELETE", f"/v1/keys/{revoked['id']}")).status_code == 204
    for _ in range(2 * parse(limits.INVALID_KEYS_PER_ADDRESS).amount):
        problem(await call(revoked["secret"]), 401, "credentials_invalid")
    fresh = await alice.create_key()
    assert (await call(fresh["secret"])).status_code == 200


def test_few_keys_are_known_at_a_time() -> None:
    known = KnownKeys(keys_max=2)
    for key in (b"a", b"b", b"a", b"c"):
        known.note(key, key != b"c")
    assert [known.was_valid(key) for key in (b"a", b"b", b"c")] == [True, None, False]
    assert len(known) == 2


async def test_processes_count_together(redis_url: str, bus: Redis) -> None:
    first, second = Rates("2/hour", redis_url), Rates("2/hour", redis_url)
    try:
        await first.signup("203.0.113.1")
        await second.signup("203.0.113.1")
        for rates in (first, second):
            with pytest.raises(Problem):
                await rates.signup("203.0.113.1")
        await second.signup("203.0.113.2")
    finally:
        await first.aclose()
        await second.aclose()


async def test_without_redis_a_process_counts_alone() -> None:
    counter = Counter("redis://127.0.0.1:1/0")
    item = parse("2/hour")
    try:
        for _ in range(2):
            assert (await counter.hit(item, "x")).allowed
        assert not (await counter.look(item, "x")).allowed
        assert not (await counter.hit(item, "x")).allowed
    finally:
        await counter.aclose()
