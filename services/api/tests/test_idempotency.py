"""Idempotency-Key: one effect, the same answer."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest

from quorate_api.http import idempotency
from support.customer import PASSWORD, SLA, Customer, new_key, problem


async def posts(customer: Customer) -> list[tuple[str, Any]]:
    project = f"/v1/projects/{customer.project_id}"
    return [
        ("/v1/projects", {"name": "p"}),
        (f"{project}/keys", {"name": "k"}),
        (f"{project}/groups", {"name": "g", **SLA}),
        ("/v1/quotes", SLA),
    ]


async def test_every_post_replayed_three_times(alice: Customer, owner: psycopg.Connection) -> None:
    for path, body in await posts(alice):
        key = new_key()
        first = await alice.post(path, body, key)
        assert first.is_success, first.text
        for _ in range(3):
            again = await alice.post(path, body, key)
            assert (again.status_code, again.content) == (first.status_code, first.content)
            assert again.headers.get("etag") == first.headers.get("etag")
            assert again.headers["idempotency-replayed"] == "true"
    for table, count in (("projects", 2), ("api_keys", 1), ("groups", 1)):
        assert owner.execute(f"SELECT count(*) FROM {table}").fetchone() == (count,), table


async def test_signing_up_and_logging_in_too(api: httpx2.AsyncClient, owner: psycopg.Connection) -> None:
    body = {"email": "carol@example.com", "password": PASSWORD, "organization": "c"}
    for path, sent in (("/v1/signup", body), ("/v1/login", {"email": body["email"], "password": PASSWORD})):
        headers = {"Idempotency-Key": new_key()}
        answers = [await api.post(path, json=sent, headers=headers) for _ in range(3)]
        assert len({answer.content for answer in answers}) == 1
        assert len({answer.headers["set-cookie"] for answer in answers}) == 1
        api.cookies.clear()
    assert owner.execute("SELECT count(*) FROM sessions").fetchone() == (2,)
    headers = {"Idempotency-Key": "one key"}
    assert (
        await api.post("/v1/login", json={"email": body["email"], "password": PASSWORD}, headers=headers)
    ).is_success
    api.cookies.clear()
    guess = await api.post("/v1/login", json={"email": body["email"], "password": "a wrong guess"}, headers=headers)
    problem(guess, 422, "idempotency_key_reused")
    assert "set-cookie" not in guess.headers


async def test_another_body_is_refused(alice: Customer) -> None:
    key = new_key()
    assert (await alice.post("/v1/projects", {"name": "a"}, key)).is_success
    problem(await alice.post("/v1/projects", {"name": "b"}, key), 422, "idempotency_key_reused")
    problem(await alice.post("/v1/quotes", SLA, key), 422, "idempotency_key_reused")


async def test_at_the_same_time_one_does_the_work(alice: Customer, owner: psycopg.Connection) -> None:
    key = new_key()
    answers = await asyncio.gather(*(alice.post("/v1/projects", {"name": "a"}, key) for _ in range(8)))
    statuses = sorted(answer.status_code for answer in answers)
    assert 201 in statuses
    assert set(statuses) <= {201, 409}
    for answer in answers:
        if answer.status_code == 409:
            problem(answer, 409, "idempotency_in_progress")
            assert answer.headers["retry-after"] == "1"
    assert owner.execute("SELECT count(*) FROM projects WHERE name = 'a'").fetchone() == (1,)


async def test_a_refused_request_frees_its_key(alice: Customer) -> None:
    key = new_key()
    problem(await alice.post("/v1/projects", {"name": ""}, key), 422, "validation_failed")
    assert (await alice.post("/v1/projects", {"name": "corrected"}, key)).is_success


async def test_a_crash_between_commit_and_reply(
    alice: Customer, monkeypatch: pytest.MonkeyPatch, owner: psycopg.Connection
) -> None:
    """The process dies after the commit: the repetition gets the answer, and the work is not repeated."""
    key = new_key()
    first = await alice.post("/v1/projects", {"name": "a"}, key)
    del first  # never arrived
    again = await alice.post("/v1/projects", {"name": "a"}, key)
    assert again.status_code == 201
    assert owner.execute("SELECT count(*) FROM projects WHERE name = 'a'").fetchone() == (1,)


async def test_a_crash_before_commit(
    alice: Customer, monkeypatch: pytest.MonkeyPatch, owner: psycopg.Connection
) -> None:
    """The process dies before the commit: no effect remains, and the work is done after the claim has expired."""

    class Crash(BaseException):
        pass

    async def crash(*_: object) -> None:
        raise Crash

    key = new_key()
    with monkeypatch.context() as patch:
        patch.setattr(idempotency.Claim, "store", crash)
        with pytest.raises(Crash):
            await alice.post("/v1/projects", {"name": "a"}, key)
    assert owner.execute("SELECT count(*) FROM projects WHERE name = 'a'").fetchone() == (0,)
    problem(await alice.post("/v1/projects", {"name": "a"}, key), 409, "idempotency_in_progress")
    past = datetime.now(UTC) - timedelta(seconds=1)
    owner.execute("UPDATE idempotency_keys SET locked_until = %s", (past,))
    assert (await alice.post("/v1/projects", {"name": "a"}, key)).status_code == 201


async def test_stored_answers_are_sealed(alice: Customer, owner: psycopg.Connection) -> None:
    key = new_key()
    answer = await alice.post(f"/v1/projects/{alice.project_id}/keys", {"name": "k"}, key)
    rows = owner.execute("SELECT key_hmac, fingerprint, answer FROM idempotency_keys").fetchall()
    stored = b"".join(column for row in rows for column in row)
    assert key.encode() not in stored
    assert answer.json()["secret"].encode() not in stored


@pytest.mark.parametrize("bad", ["", "x" * 256, "tab\there"])
async def test_bad_keys(alice: Customer, bad: str) -> None:
    answer = await alice.request("POST", "/v1/projects", json={"name": "a"}, headers={"Idempotency-Key": bad})
    problem(answer, 422, "validation_failed")
