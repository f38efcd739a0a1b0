"""Signing up, logging in, sessions, CSRF."""

import re

import httpx2
import psycopg
import pytest
from starlette.requests import HTTPConnection

from quorate_api import app as application
from quorate_api.http.address import client_address
from quorate_api.http.rates import Rates
from quorate_api.http.services import Services
from support.customer import PASSWORD, Customer, problem


async def test_sign_up_opens_a_session(api: httpx2.AsyncClient, alice: Customer) -> None:
    me = await alice.get("/v1/me")
    assert me["user"]["email"] == "alice@example.com"
    assert me["role"] == "owner"
    assert [project["name"] for project in me["projects"]] == ["default"]
    assert me["csrf_token"] == alice.csrf_token


async def test_the_cookie_is_careful(api: httpx2.AsyncClient) -> None:
    body = {"email": "Carol@Example.com", "password": PASSWORD, "organization": "Carol's"}
    answer = await api.post("/v1/signup", json=body)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert answer.json()["user"]["email"] == "carol@example.com", "e-mails are compared in lower case"


async def test_over_https_browsers_keep_the_cookies_to_this_host(services: Services) -> None:
    services.settings = services.settings.model_copy(update={"public_url": "https://testserver"})
    transport = httpx2.ASGITransport(app=application.build(services), raise_app_exceptions=True)
    async with httpx2.AsyncClient(transport=transport, base_url="https://testserver") as client:
        body = {"email": "carol@example.com", "password": PASSWORD, "organization": "Carol's"}
        answer = await client.post("/v1/signup", json=body)
        assert answer.status_code == 201, answer.text
        cookies = answer.headers.get_list("set-cookie")
        assert {cookie.partition("=")[0] for cookie in cookies} == {"__Host-quorate_session", "__Host-quorate_device"}
        for cookie in cookies:
            attributes = {each.strip().lower() for each in cookie.split(";")[1:]}
            assert {"secure", "httponly", "path=/"} <= attributes
            assert not any(each.startswith("domain") for each in attributes), "a domain would widen it"
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert (await client.get("/v1/me")).status_code == 200


async def test_one_account_per_email(alice: Customer) -> None:
    body = {"email": "ALICE@example.com", "password": PASSWORD, "organization": "again"}
    problem(await alice.api.post("/v1/signup", json=body), 409, "email_taken")


async def test_login_and_logout(api: httpx2.AsyncClient, alice: Customer) -> None:
    answer = await api.post("/v1/login", json={"email": "alice@example.com", "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    assert answer.json()["organization"]["id"] == alice.organization_id
    token = answer.json()["csrf_token"]
    assert (await api.get("/v1/me")).status_code == 200
    assert (await api.post("/v1/logout", headers={"X-CSRF-Token": token})).status_code == 204
    assert "quorate_session" not in api.cookies
    old = {"Cookie": f"quorate_session={answer.cookies['quorate_session']}"}
    problem(await api.get("/v1/me", headers=old), 401, "session_expired")
    assert (await alice.get("/v1/me"))["user"]["email"] == alice.email, "other sessions stay"


async def test_wrong_password_and_unknown_account_look_alike(api: httpx2.AsyncClient, alice: Customer) -> None:
    answers = [
        await api.post("/v1/login", json={"email": email, "password": "wrong password"})
        for email in ("alice@example.com", "nobody@example.com")
    ]
    first, second = (problem(answer, 401, "credentials_invalid") for answer in answers)
    assert first["detail"] == second["detail"]


async def test_failed_logins_are_limited(api: httpx2.AsyncClient, alice: Customer) -> None:
    body = {"email": "alice@example.com", "password": "wrong password"}
    for _ in range(10):
        problem(await api.post("/v1/login", json=body), 401, "credentials_invalid")
    answer = await api.post("/v1/login", json=body | {"password": PASSWORD})
    problem(answer, 429, "rate_limited")
    assert int(answer.headers["retry-after"]) > 0


async def test_changes_through_a_session_need_the_csrf_token(alice: Customer) -> None:
    for headers in ({"X-CSRF-Token": ""}, {"X-CSRF-Token": "x" * 32}, {"X-CSRF-Token": "ü"}):
        encoded = {name: value.encode() for name, value in headers.items()}
        answer = await alice.request("POST", "/v1/projects", json={"name": "p"}, headers=encoded)
        problem(answer, 403, "csrf_token_invalid")
    assert len((await alice.get("/v1/projects"))["items"]) == 1


async def test_nobody_gets_nothing(api: httpx2.AsyncClient) -> None:
    answer = await api.get("/v1/me")
    problem(answer, 401, "not_authenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    for header in ("Bearer qk_nonsense", "Basic YTpi", "Bearer", "Bearer qk_" + "0" * 38, "Bearer qk_" + "é" * 38):
        answer = await api.get("/v1/me", headers={"Authorization": header.encode()})
        problem(answer, 401, "credentials_invalid")


async def test_secrets_are_not_stored(alice: Customer, owner: psycopg.Connection) -> None:
    key = await alice.create_key()
    stored = " ".join(
        str(row)
        for table in ("users", "sessions", "api_keys", "api_key_secrets", "idempotency_keys")
        for row in owner.execute(f"SELECT * FROM {table}").fetchall()
    )
    assert key["prefix"] in stored
    for secret in (PASSWORD, alice.cookie, key["secret"], key["secret"][9:], alice.csrf_token):
        assert secret not in stored
    hashes = [row[0] for row in owner.execute("SELECT password_hash FROM users").fetchall()]
    assert all(re.match(r"\$argon2id\$", text) for text in hashes)


def _connection(*forwarded: str) -> HTTPConnection:
    headers = [(b"x-forwarded-for", line.encode()) for line in forwarded]
    return HTTPConnection({"type": "http", "headers": headers, "client": ("10.0.0.1", 4711)})


@pytest.mark.parametrize(
    ("proxies", "forwarded", "counts"),
    [
        (0, ["203.0.113.9"], "10.0.0.1"),  # without trusted proxies the header is ignored
        (1, ["203.0.113.9"], "203.0.113.9"),
        (1, ["198.51.100.1, 203.0.113.9"], "203.0.113.9"),  # the client's own entry is ignored
        (1, ["198.51.100.1", "203.0.113.9"], "203.0.113.9"),
        (2, ["198.51.100.1, 203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        (2, ["203.0.113.9"], "10.0.0.1"),  # the request bypassed one of them
        (1, [], "10.0.0.1"),
        (1, ["somebody"], "10.0.0.1"),
        (1, ["203.0.113.9:1234"], "203.0.113.9"),
        (1, ["[2001:db8::9]:1234"], "2001:db8::9"),
        (1, ["2001:DB8::9"], "2001:db8::9"),
    ],
)
def test_whose_address_counts(proxies: int, forwarded: list[str], counts: str) -> None:
    assert client_address(_connection(*forwarded), proxies) == counts


async def test_sign_ups_behind_a_balancer_are_counted_for_each_client(
    api: httpx2.AsyncClient, services: Services
) -> None:
    services.rates = Rates(signups_per_address="1/hour")
    services.settings = services.settings.model_copy(update={"trusted_proxies": 1})

    async def sign_up(name: str, forwarded: str) -> httpx2.Response:
        body = {"email": f"{name}@example.com", "password": PASSWORD, "organization": name}
        return await api.post("/v1/signup", json=body, headers={"X-Forwarded-For": forwarded})

    assert (await sign_up("one", "203.0.113.1")).status_code == 201
    assert (await sign_up("two", "203.0.113.2")).status_code == 201
    problem(await sign_up("three", "198.51.100.7, 203.0.113.1"), 429, "rate_limited")
