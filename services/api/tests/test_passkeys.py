"""Passkeys: added, shown to log in and to confirm; answers that prove nothing are refused."""

from typing import Any

import httpx2
import psycopg
import pytest

from quorate_api import limits
from quorate_api.passkeys.ceremony import Place
from support.authenticator import PRESENT, VERIFIED, Authenticator
from support.customer import PASSWORD, Customer, problem
from support.mailbox import Mailbox

ORIGIN = "http://testserver"


@pytest.fixture
def device() -> Authenticator:
    return Authenticator(ORIGIN)


async def add(customer: Customer, device: Authenticator, name: str = "laptop") -> httpx2.Response:
    begun = await customer.post("/v1/me/passkeys/begin", {})
    assert begun.status_code == 200, begun.text
    made = device.create(begun.json()["public_key"])
    return await customer.post("/v1/me/passkeys", {"name": name, "credential": made})


async def shown(api: httpx2.AsyncClient, device: Authenticator) -> dict[str, Any]:
    """The device's answer to a fresh challenge."""
    asked = await api.post("/v1/passkey-requests")
    assert asked.status_code == 200, asked.text
    return device.get(asked.json()["public_key"])


async def log_in(api: httpx2.AsyncClient, credential: dict[str, Any]) -> httpx2.Response:
    return await api.post("/v1/login/passkey", json={"credential": credential})


async def test_a_passkey_logs_in_alone(alice: Customer, api: httpx2.AsyncClient, device: Authenticator) -> None:
    added = await add(alice, device)
    assert added.status_code == 201, added.text
    assert (await alice.get("/v1/me/passkeys"))["items"] == [added.json()]
    answer = await log_in(api, await shown(api, device))
    assert answer.status_code == 200, answer.text
    assert answer.json()["user"]["email"] == "alice@example.com"
    assert "quorate_session" in answer.cookies
    (known,) = (await alice.get("/v1/me/passkeys"))["items"]
    assert known["last_used_at"] is not None
    events = (await alice.get("/v1/audit"))["items"]
    assert [event["operation"] for event in events[:2]] == ["log_in_with_passkey", "add_passkey"]
    assert events[1]["request"] == {"name": "laptop", "credential": "…"}


async def test_a_removed_passkey_ends(alice: Customer, api: httpx2.AsyncClient, device: Authenticator) -> None:
    passkey = (await add(alice, device)).json()
    assert (await alice.request("DELETE", f"/v1/me/passkeys/{passkey['id']}")).status_code == 204
    problem(await alice.request("DELETE", f"/v1/me/passkeys/{passkey['id']}"), 404, "not_found")
    problem(await log_in(api, await shown(api, device)), 401, "credentials_invalid")


async def test_a_passkey_confirms_a_person(
    alice: Customer, bob: Customer, owner: psycopg.Connection, device: Authenticator
) -> None:
    await add(alice, device)
    others = Authenticator(ORIGIN)
    await add(bob, others)
    owner.execute("UPDATE sessions SET authenticated_at = now() - interval '16 minutes'")
    path = f"/v1/projects/{alice.project_id}/keys"
    problem(await alice.post(path, {"name": "late"}), 403, "confirmation_required")
    problem(await alice.post("/v1/me/passkeys/begin", {}), 403, "confirmation_required")
    stranger = {"passkey": await shown(alice.api, others)}
    problem(await alice.post("/v1/me/confirm", stranger), 401, "credentials_invalid")
    both = {"passkey": await shown(alice.api, device), "password": PASSWORD}
    problem(await alice.post("/v1/me/confirm", both), 422, "validation_failed")
    assert (await alice.post("/v1/me/confirm", {"passkey": await shown(alice.api, device)})).status_code == 204
    assert (await alice.post(path, {"name": "late"})).status_code == 201


async def test_no_challenge_is_answered_twice(
    alice: Customer, api: httpx2.AsyncClient, device: Authenticator, owner: psycopg.Connection
) -> None:
    begun = (await alice.post("/v1/me/passkeys/begin", {})).json()["public_key"]
    made = {"name": "laptop", "credential": device.create(begun)}
    assert (await alice.post("/v1/me/passkeys", made)).status_code == 201
    await alice.request("DELETE", f"/v1/me/passkeys/{(await alice.get('/v1/me/passkeys'))['items'][0]['id']}")
    problem(await alice.post("/v1/me/passkeys", made), 422, "validation_failed")
    await add(alice, device)
    answer = await shown(api, device)
    assert (await log_in(api, answer)).status_code == 200
    owner.execute("UPDATE passkeys SET sign_count = 0")
    assert "before" in problem(await log_in(api, answer), 401, "credentials_invalid")["detail"]
    owner.execute("UPDATE answered_challenges SET expires_at = now() - interval '1 second'")
    assert (await log_in(api, await shown(api, device))).status_code == 200
    (kept,) = owner.execute("SELECT count(*) FROM answered_challenges").fetchone() or (0,)
    assert kept == 1, "those that have expired are forgotten"


async def test_answers_that_prove_nothing(alice: Customer, api: httpx2.AsyncClient, device: Authenticator) -> None:
    await add(alice, device)
    elsewhere = Authenticator("https://quorate.example.com")
    for wrong in ("origin", "user not verified", "key", "host", "challenge"):
        asked = (await api.post("/v1/passkey-requests")).json()["public_key"]
        if wrong == "origin":
            device.origin = elsewhere.origin
        if wrong == "user not verified":
            device.flags = PRESENT
        if wrong == "host":
            asked["rpId"] = "example.com"
        if wrong == "challenge":
            asked["challenge"] = "A" * 80
        answer = device.get(asked)
        if wrong == "key":
            answer["response"]["signature"] = elsewhere.get(asked)["response"]["signature"]
        problem(await log_in(api, answer), 401, "credentials_invalid")
        device.origin, device.flags = ORIGIN, PRESENT | VERIFIED
    device.count = 9
    assert (await log_in(api, await shown(api, device))).status_code == 200
    device.count = 1
    assert "count" in problem(await log_in(api, await shown(api, device)), 401, "credentials_invalid")["detail"]


async def test_a_challenge_for_adding_is_of_one_person(alice: Customer, bob: Customer, device: Authenticator) -> None:
    begun = (await alice.post("/v1/me/passkeys/begin", {})).json()["public_key"]
    stolen = {"name": "laptop", "credential": device.create(begun)}
    problem(await bob.post("/v1/me/passkeys", stolen), 422, "validation_failed")
    assert (await alice.post("/v1/me/passkeys", stolen)).status_code == 201
    again = await alice.post("/v1/me/passkeys/begin", {})
    (excluded,) = again.json()["public_key"]["excludeCredentials"]
    assert excluded["id"] == stolen["credential"]["id"]
    answer = await bob.post("/v1/me/passkeys/begin", {})
    taken = {"name": "mine", "credential": device.create(answer.json()["public_key"])}
    problem(await bob.post("/v1/me/passkeys", taken), 409, "name_taken")


async def test_an_invitation_is_accepted_with_a_passkey(
    alice: Customer, api: httpx2.AsyncClient, device: Authenticator, mailbox: Mailbox, owner: psycopg.Connection
) -> None:
    owner.execute("UPDATE users SET email_verified_at = now()")
    invited = {"email": "colleague@example.com", "role": "developer"}
    assert (await alice.post("/v1/organization/invitations", invited)).status_code == 201
    token = await mailbox.link("colleague@example.com")
    problem(await api.post("/v1/invitations/passkey", json={"token": "x" * 43}), 409, "link_invalid")
    begun = (await api.post("/v1/invitations/passkey", json={"token": token})).json()
    assert begun["public_key"]["user"]["name"] == "colleague@example.com"
    passkey = {"user_id": begun["user_id"], "name": "desk", "credential": device.create(begun["public_key"])}
    both = {"token": token, "passkey": passkey, "password": PASSWORD}
    problem(await api.post("/v1/invitations/accept", json=both), 422, "validation_failed")
    others = passkey | {"user_id": alice.organization_id}
    problem(
        await api.post("/v1/invitations/accept", json={"token": token, "passkey": others}), 422, "validation_failed"
    )
    accepted = await api.post("/v1/invitations/accept", json={"token": token, "passkey": passkey})
    assert accepted.status_code == 200, accepted.text
    assert accepted.json()["user"]["id"] == begun["user_id"]
    assert accepted.json()["user"]["email_verified"]
    assert (await log_in(api, await shown(api, device))).status_code == 200
    problem(await api.post("/v1/invitations/accept", json={"token": token, "passkey": passkey}), 409, "link_invalid")


@pytest.mark.parametrize("credential", [{}, {"rawId": 1}, {"response": {"clientDataJSON": "!"}}, {"response": []}])
async def test_nonsense(alice: Customer, api: httpx2.AsyncClient, credential: dict[str, Any]) -> None:
    problem(await log_in(api, credential), 401, "credentials_invalid")
    answer = await alice.post("/v1/me/passkeys", {"name": "x", "credential": credential})
    assert problem(answer, 422, "validation_failed")["errors"][0]["field"] == "body.credential"


async def test_passkeys_are_bounded(alice: Customer, owner: psycopg.Connection) -> None:
    owner.execute(
        "INSERT INTO passkeys (id, user_id, name, credential_id, public_key, sign_count, created_at)"
        " SELECT gen_random_uuid(), id, 'x', sha256(n::text::bytea), 'x', 0, now()"
        " FROM users, generate_series(1, %s) n",
        (limits.PASSKEYS_MAX,),
    )
    problem(await alice.post("/v1/me/passkeys/begin", {}), 403, "quota_exceeded")


@pytest.mark.parametrize(
    ("origin", "host", "accepted"),
    [
        ("https://quorate.example.com", "quorate.example.com", "https://quorate.example.com"),
        ("http://127.0.0.1:8080", "localhost", "http://localhost:8080"),
        ("http://[::1]:8080", "localhost", "http://localhost:8080"),
        ("http://localhost", "localhost", "http://localhost"),
    ],
)
def test_the_place_of_passkeys(origin: str, host: str, accepted: str) -> None:
    assert Place.of(origin) == Place(host, [accepted])
