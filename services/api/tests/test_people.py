"""Verifying an address, passwords, sessions, second factors; quotas of organizations without such an address."""

import asyncio
import json
import re
import time
from uuid import UUID

import httpx2
import psycopg
import pyotp
import pytest
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.tables import groups
from quorate_api.database.work import Work
from quorate_api.errors import Problem
from quorate_api.factors import totp
from quorate_api.http.services import Services
from quorate_api.quotas import service as quotas
from quorate_api.worker.revocations import Revoker
from support.coordinator import FakeCoordinator
from support.customer import PASSWORD, SLA, Customer, problem
from support.mailbox import Mailbox

NEW_PASSWORD = "another horse battery"
EMAIL = "alice@example.com"


@pytest.fixture
async def alice(mailbox: Mailbox, api: httpx2.AsyncClient) -> Customer:
    return await Customer.sign_up(api, EMAIL)


async def log_in(api: httpx2.AsyncClient, password: str = PASSWORD, **more: str) -> httpx2.Response:
    answer = await api.post("/v1/login", json={"email": EMAIL, "password": password, **more})
    api.cookies.clear()
    return answer


async def verify(alice: Customer, mailbox: Mailbox) -> None:
    answer = await alice.post("/v1/me/email/verify", {"token": await mailbox.link(EMAIL)})
    assert answer.status_code == 204, answer.text


async def test_an_address_is_verified_by_mail(alice: Customer, mailbox: Mailbox) -> None:
    assert not (await alice.get("/v1/me"))["user"]["email_verified"]
    first = await mailbox.link(EMAIL)
    assert (await alice.post("/v1/me/email/verification", {})).status_code == 202
    second = await mailbox.link(EMAIL)
    problem(await alice.post("/v1/me/email/verify", {"token": first}), 409, "link_invalid")
    problem(await alice.post("/v1/me/email/verify", {"token": "x"}), 409, "link_invalid")
    assert (await alice.post("/v1/me/email/verify", {"token": second})).status_code == 204
    assert (await alice.get("/v1/me"))["user"]["email_verified"]
    assert (await alice.post("/v1/me/email/verify", {"token": second})).status_code == 204, "opened twice"


async def test_a_link_is_too_old_after_a_day(alice: Customer, mailbox: Mailbox, owner: psycopg.Connection) -> None:
    token = await mailbox.link(EMAIL)
    owner.execute("UPDATE mail_tokens SET expires_at = now()")
    problem(await alice.post("/v1/me/email/verify", {"token": token}), 409, "link_invalid")


async def test_signing_up_does_not_tell_which_addresses_exist(
    alice: Customer, mailbox: Mailbox, api: httpx2.AsyncClient
) -> None:
    await verify(alice, mailbox)
    stranger = await Customer.sign_up(api, EMAIL)
    nobody = await Customer.sign_up(api, "nobody@example.com")
    assert stranger.organization_id != alice.organization_id
    subject, text = (await mailbox.fetch(EMAIL))[-1]
    assert "already" in subject
    assert "#" not in text, "there is no link that verifies the stranger's account"
    assert await mailbox.link("nobody@example.com")
    for customer in (stranger, nobody):
        assert not (await customer.get("/v1/me"))["user"]["email_verified"]
    answer = await log_in(api)
    assert answer.json()["organization"]["id"] == alice.organization_id, "the password of both is the same"


async def test_the_holder_of_an_address_does_not_verify_a_strangers_account(
    mailbox: Mailbox, api: httpx2.AsyncClient
) -> None:
    stranger = await Customer.sign_up(api, EMAIL)
    to_stranger = await mailbox.link(EMAIL)
    alice = await Customer.sign_up(api, EMAIL)
    found = {re.findall(r"#([\w-]+)\s", text)[0] for _, text in await mailbox.fetch(EMAIL)}
    (hers,) = found - {to_stranger}
    problem(await alice.post("/v1/me/email/verify", {"token": to_stranger}), 409, "link_invalid")
    assert (await alice.post("/v1/me/email/verify", {"token": hers})).status_code == 204
    problem(await stranger.post("/v1/me/email/verify", {"token": to_stranger}), 409, "link_invalid")


async def test_unverified_organizations_have_a_small_quota(
    alice: Customer, mailbox: Mailbox, owner: psycopg.Connection
) -> None:
    path = f"/v1/projects/{alice.project_id}/groups"
    greater = {"name": "big", **SLA, "rate_per_s": limits.UNVERIFIED_TOTAL_RATE_PER_S + 1}
    answer = await alice.post(path, greater)
    assert "verified your e-mail" in problem(answer, 403, "quota_exceeded")["detail"]
    quotas = {each["code"]: each["limit"] for each in (await alice.get("/v1/quotas"))["items"]}
    assert quotas["total_rate_per_s"] == limits.UNVERIFIED_TOTAL_RATE_PER_S
    assert quotas["projects"] == limits.UNVERIFIED_PROJECTS
    await alice.create_group("small")
    await verify(alice, mailbox)
    assert (await alice.post(path, greater)).status_code == 201


async def test_strangers_share_a_small_part_of_the_fleet(
    alice: Customer, mailbox: Mailbox, api: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    await alice.create_group("first")
    owner.execute("UPDATE groups SET rate_per_s = %s", (limits.UNVERIFIED_FLEET_RATE_PER_S,))
    stranger = await Customer.sign_up(api, "stranger@example.com")
    path = f"/v1/projects/{stranger.project_id}/groups"
    answer = await stranger.post(path, {"name": "g", **SLA})
    assert "no room" in problem(answer, 403, "quota_exceeded")["detail"]
    await verify(alice, mailbox)
    assert (await stranger.post(path, {"name": "g", **SLA})).status_code == 201, "the verified one does not count"


async def test_strangers_who_ask_at_once_do_not_share_more_than_there_is(
    alice: Customer, bob: Customer, services: Services, owner: psycopg.Connection
) -> None:
    """The first one has room, and takes it all before it commits."""
    await alice.create_group()

    async def ask(work: Work, customer: Customer) -> None:
        await work.enter(UUID(customer.organization_id))
        await quotas.lock(work)
        await quotas.check(work, quotas.TOTAL_RATE, adding=1_000)

    async def ask_later() -> None:
        async with Work(services.engine) as work:
            await ask(work, bob)

    async with Work(services.engine) as first:
        await ask(first, alice)
        later = asyncio.create_task(ask_later())
        waits = (
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted"
        )
        async with asyncio.timeout(10):
            while not later.done() and owner.execute(waits).fetchone() == (0,):
                await asyncio.sleep(0.01)
        await first.connection.execute(update(groups).values(rate_per_s=limits.UNVERIFIED_FLEET_RATE_PER_S))
    with pytest.raises(Problem, match="quota_exceeded"):
        await later


async def test_a_pending_resize_of_a_stranger_counts_and_a_rate_set_by_operators_does_not(
    alice: Customer, bob: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    await alice.create_group()
    pending = {"revision": 2, "sla": {**SLA, "rate_per_s": limits.UNVERIFIED_FLEET_RATE_PER_S}}
    owner.execute("UPDATE groups SET resize = %s", (json.dumps(pending),))
    path = f"/v1/projects/{bob.project_id}/groups"
    answer = await bob.post(path, {"name": "g", **SLA})
    assert "no room" in problem(answer, 403, "quota_exceeded")["detail"]
    quota = f"/v1/operator/organizations/{alice.organization_id}/quotas"
    assert (await operator.put(f"{quota}/projects", json={"limit": 3})).status_code == 200
    problem(await bob.post(path, {"name": "g", **SLA}), 403, "quota_exceeded")
    assert (await operator.put(f"{quota}/total_rate_per_s", json={"limit": 10**6})).status_code == 200
    assert (await bob.post(path, {"name": "g", **SLA})).status_code == 201


async def test_a_forgotten_password_is_set_anew(
    alice: Customer, mailbox: Mailbox, api: httpx2.AsyncClient, services: Services
) -> None:
    await verify(alice, mailbox)
    before = len(await mailbox.fetch("nobody@example.com"))
    times = []
    for email in (EMAIL, "nobody@example.com"):
        began = time.monotonic()
        answer = await api.post("/v1/password/reset-requests", json={"email": email})
        times.append(time.monotonic() - began)
        assert answer.status_code == 202
        assert answer.content == b""
    assert abs(times[0] - times[1]) < 0.1
    assert len(await mailbox.fetch("nobody@example.com")) == before
    token = await mailbox.link(EMAIL)
    problem(await api.post("/v1/password/reset", json={"token": token, "password": "short"}), 422, "validation_failed")
    answer = await api.post("/v1/password/reset", json={"token": token, "password": NEW_PASSWORD})
    assert answer.status_code == 204, answer.text
    answer = await api.post("/v1/password/reset", json={"token": token, "password": NEW_PASSWORD})
    problem(answer, 409, "link_invalid")
    problem(await alice.request("GET", "/v1/me"), 401, "session_expired")
    problem(await log_in(api), 401, "credentials_invalid")
    assert (await log_in(api, NEW_PASSWORD)).status_code == 200
    assert "was changed" in (await mailbox.fetch(EMAIL))[-1][0]


async def test_nobody_resets_an_unverified_account(alice: Customer, mailbox: Mailbox, api: httpx2.AsyncClient) -> None:
    before = await mailbox.fetch(EMAIL)
    assert (await api.post("/v1/password/reset-requests", json={"email": EMAIL})).status_code == 202
    assert await mailbox.fetch(EMAIL) == before


async def test_changing_the_password_ends_other_sessions(
    alice: Customer, mailbox: Mailbox, api: httpx2.AsyncClient
) -> None:
    other = (await api.post("/v1/login", json={"email": EMAIL, "password": PASSWORD})).cookies["quorate_session"]
    api.cookies.clear()
    body = {"password": "wrong password", "new_password": NEW_PASSWORD}
    problem(await alice.post("/v1/me/password", body), 401, "credentials_invalid")
    assert (await alice.post("/v1/me/password", body | {"password": PASSWORD})).status_code == 204
    assert (await alice.get("/v1/me"))["user"]["email"] == EMAIL
    answer = await api.get("/v1/me", headers={"Cookie": f"quorate_session={other}"})
    problem(answer, 401, "session_expired")


async def test_sessions_are_listed_and_ended(
    alice: Customer,
    mailbox: Mailbox,
    api: httpx2.AsyncClient,
    worker_engine: AsyncEngine,
    services: Services,
    coordinator: FakeCoordinator,
    bob: Customer,
) -> None:
    answer = await api.post(
        "/v1/login", json={"email": EMAIL, "password": PASSWORD}, headers={"User-Agent": "Phone\u00e9".encode()}
    )
    phone = {"Cookie": f"quorate_session={answer.cookies['quorate_session']}"}
    api.cookies.clear()
    group = await alice.create_group()
    assert (await api.get(f"/v1/groups/{group['id']}/handle", headers=phone)).status_code == 200
    items = (await alice.get("/v1/me/sessions"))["items"]
    assert [each["is_current"] for each in items].count(True) == 1
    (listed,) = [each for each in items if not each["is_current"]]
    assert listed["user_agent"].startswith("Phone")
    assert listed["address"] == "127.0.0.1"
    problem(await bob.request("DELETE", f"/v1/me/sessions/{listed['id']}"), 404, "not_found")
    assert (await alice.request("DELETE", f"/v1/me/sessions/{listed['id']}")).status_code == 204
    problem(await api.get("/v1/me", headers=phone), 401, "session_expired")
    await Revoker(worker_engine, services.coordinator).run()
    assert set(coordinator.revocations) == {listed["id"]}, "servers refuse its token, too"
    for _ in range(2):
        await log_in(api)
    assert (await alice.request("DELETE", "/v1/me/sessions")).status_code == 204
    assert len((await alice.get("/v1/me/sessions"))["items"]) == 1


async def test_an_idle_session_ends(alice: Customer, owner: psycopg.Connection) -> None:
    owner.execute("UPDATE sessions SET last_seen_at = now() - interval '23 hours'")
    await alice.get("/v1/me")
    (seen,) = owner.execute("SELECT last_seen_at > now() - interval '1 minute' FROM sessions").fetchone() or ()
    assert seen, "its use was noted"
    owner.execute("UPDATE sessions SET last_seen_at = now() - interval '25 hours'")
    problem(await alice.request("GET", "/v1/me"), 401, "session_expired")


async def add_totp(alice: Customer) -> tuple[str, list[str]]:
    """The authenticator's secret, and recovery codes."""
    begun = (await alice.post("/v1/me/totp", {})).json()
    assert begun["uri"].startswith("otpauth://totp/Quorate:")
    problem(await alice.post("/v1/me/totp/confirm", {"code": "000000"}), 401, "second_factor_wrong")
    code = pyotp.TOTP(begun["secret"]).now()
    confirmed = await alice.post("/v1/me/totp/confirm", {"code": f"{code[:3]} {code[3:]}"})
    assert confirmed.status_code == 200, confirmed.text
    return begun["secret"], confirmed.json()["codes"]


async def test_logging_in_takes_a_code(
    alice: Customer, mailbox: Mailbox, api: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    secret, codes = await add_totp(alice)
    assert len(set(codes)) == limits.RECOVERY_CODES
    problem(await log_in(api), 401, "second_factor_required")
    problem(await log_in(api, "wrong password"), 401, "credentials_invalid")
    (step,) = owner.execute("SELECT last_step FROM totps").fetchone() or (0,)
    present = pyotp.TOTP(secret).generate_otp(step)
    problem(await log_in(api, code=present), 401, "second_factor_wrong")  # it confirmed the authenticator
    owner.execute("UPDATE totps SET last_step = 0")
    assert (await log_in(api, code=present)).status_code == 200
    problem(await log_in(api, code=present), 401, "second_factor_wrong")
    assert (await log_in(api, code=codes[0].lower())).status_code == 200
    problem(await log_in(api, code=codes[0]), 401, "second_factor_wrong")
    assert await alice.get("/v1/me/second-factor") == {"totp": True, "recovery_codes_left": limits.RECOVERY_CODES - 1}
    renewed = (await alice.post("/v1/me/recovery-codes", {})).json()["codes"]
    problem(await log_in(api, code=codes[1]), 401, "second_factor_wrong")
    assert (await log_in(api, code=renewed[0])).status_code == 200
    stored = str(owner.execute("SELECT sealed FROM totps").fetchall())
    assert secret not in stored
    assert (await alice.request("DELETE", "/v1/me/totp")).status_code == 204
    assert (await log_in(api)).status_code == 200
    assert "second factor" in (await mailbox.fetch(EMAIL))[-1][0]


def test_a_code_works_once_and_in_its_time() -> None:
    secret = totp.new_secret()
    now_s = 1_790_000_000.0
    step = int(now_s) // limits.TOTP_STEP_S
    code = pyotp.TOTP(secret).generate_otp(step)
    assert totp.step_of(secret, code, now_s, 0) == step
    assert totp.step_of(secret, code, now_s + limits.TOTP_STEP_S, 0) == step, "a clock that is a little late"
    assert totp.step_of(secret, code, now_s + 2 * limits.TOTP_STEP_S, 0) is None
    assert totp.step_of(secret, code, now_s, step) is None
    assert totp.step_of(secret, "abcdef", now_s, 0) is None


async def test_changes_of_keys_take_a_fresh_confirmation(
    alice: Customer, owner: psycopg.Connection, mailbox: Mailbox
) -> None:
    key = await alice.create_key()
    owner.execute("UPDATE sessions SET authenticated_at = now() - interval '16 minutes'")
    path = f"/v1/projects/{alice.project_id}/keys"
    problem(await alice.post(path, {"name": "late"}), 403, "confirmation_required")
    problem(await alice.request("DELETE", f"/v1/keys/{key['id']}"), 403, "confirmation_required")
    problem(await alice.post("/v1/me/totp", {}), 403, "confirmation_required")
    problem(await alice.post("/v1/me/confirm", {}), 422, "validation_failed")
    problem(await alice.post("/v1/me/confirm", {"password": "wrong password"}), 401, "credentials_invalid")
    assert (await alice.post("/v1/me/confirm", {"password": PASSWORD})).status_code == 204
    assert (await alice.post(path, {"name": "late"})).status_code == 201
    _, codes = await add_totp(alice)
    problem(await alice.post("/v1/me/confirm", {"password": PASSWORD}), 401, "second_factor_required")
    assert (await alice.post("/v1/me/confirm", {"code": codes[0]})).status_code == 204
