"""A stranger signs up with somebody else's address: that gains nothing, and locks nobody out."""

import httpx2
import psycopg
import pytest
from limits import parse

from quorate_api import limits
from quorate_api.http.services import Services
from support.customer import PASSWORD, Customer, problem
from support.mailbox import Mailbox

EMAIL = "ada@example.com"


async def sign_up(api: httpx2.AsyncClient, password: str) -> httpx2.Response:
    body = {"email": EMAIL, "password": password, "organization": "o"}
    answer = await api.post("/v1/signup", json=body)
    api.cookies.clear()
    assert answer.status_code == 201, answer.text
    return answer


async def log_in(api: httpx2.AsyncClient, password: str, device: str | None = None) -> httpx2.Response:
    headers = {"Cookie": f"quorate_device={device}"} if device else {}
    answer = await api.post("/v1/login", json={"email": EMAIL, "password": password}, headers=headers)
    api.cookies.clear()
    return answer


@pytest.fixture
async def ada(mailbox: Mailbox, api: httpx2.AsyncClient) -> Customer:
    """Her address is verified."""
    made = await Customer.sign_up(api, EMAIL)
    answer = await made.post("/v1/me/email/verify", {"token": await mailbox.link(EMAIL)})
    assert answer.status_code == 204, answer.text
    return made


async def test_whoever_has_not_shown_the_address_has_no_known_device(ada: Customer, api: httpx2.AsyncClient) -> None:
    stranger = await sign_up(api, "a password of a stranger")
    assert "quorate_device" not in stranger.cookies
    assert "quorate_device" not in (await log_in(api, "a password of a stranger")).cookies
    assert "quorate_device" in (await log_in(api, PASSWORD)).cookies


async def test_a_known_device_is_of_its_account_alone(
    ada: Customer, api: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    """Another account's device lifts no limit of hers."""
    device = (await log_in(api, PASSWORD)).cookies["quorate_device"]
    owner.execute("UPDATE users SET email = 'former@example.com' WHERE email = %s", (EMAIL,))
    await sign_up(api, "the next holder's password")
    owner.execute("UPDATE users SET email_verified_at = now() WHERE email = %s", (EMAIL,))
    for _ in range(parse(limits.LOGIN_FAILURES_PER_PAIR).amount):
        problem(await log_in(api, "a guess of a password", device), 401, "credentials_invalid")
    problem(await log_in(api, "a guess of a password"), 429, "rate_limited")


async def test_later_sign_ups_lock_out_nobody_who_has_not_verified_yet(
    mailbox: Mailbox, api: httpx2.AsyncClient
) -> None:
    await sign_up(api, "the first one's password")
    for number in range(4):
        await sign_up(api, f"a stranger's password {number}")
    assert (await log_in(api, "the first one's password")).status_code == 200
    assert (await log_in(api, "a stranger's password 3")).status_code == 200, "the newest one, too"


async def test_rotations_are_limited_as_new_keys_are(alice: Customer, services: Services) -> None:
    """Each may be a revocation, and servers hold so many."""
    key = await alice.create_key()
    for _ in range(parse(limits.NEW_KEYS_PER_ORGANIZATION).amount - 1):
        await services.rates.new_key(alice.organization_id)
    problem(await alice.post(f"/v1/keys/{key['id']}/rotate", {"grace_s": 0}), 429, "rate_limited")


async def test_an_organization_is_found_by_its_id_and_not_by_a_name_like_it(
    alice: Customer, bob: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    owner.execute(
        "UPDATE organizations SET name = %s WHERE organization_id = %s", (alice.organization_id, bob.organization_id)
    )
    for search in (alice.organization_id, alice.organization_id.upper()):
        found = (await operator.get("/v1/operator/organizations", params={"search": search})).json()["items"]
        assert [each["id"] for each in found] == [alice.organization_id]
