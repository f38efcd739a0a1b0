"""Operators as persons: named sessions that end, an audit log of their own, an address of their own."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import httpx2
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate_api import app as application
from quorate_api import exit_codes, main
from quorate_api.audit import chain
from quorate_api.http.listeners import Customers
from quorate_api.http.services import Services
from quorate_api.security import operator_sessions, staff_tokens
from quorate_api.security.keys import Keys
from quorate_api.security.operator_sessions import OperatorSession
from quorate_api.security.staff_tokens import StaffTokens
from quorate_api.settings import Settings
from support.customer import Customer, bearer, problem

KEYS = Keys(b"s" * 32)
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ADA = OperatorSession(uuid4(), "ada@example.com", NOW + timedelta(hours=8))


async def session(operator: httpx2.AsyncClient, name: str = "ada@example.com") -> dict[str, str]:
    answer = await operator.post("/v1/operator/sessions", json={"name": name})
    assert answer.status_code == 201, answer.text
    return bearer({"secret": answer.json()["token"]})


def test_a_session_is_read_until_it_ends() -> None:
    token = operator_sessions.issue(KEYS, ADA)
    assert operator_sessions.read(KEYS, token, NOW) == ADA
    assert operator_sessions.read(KEYS, token, ADA.until) is None
    assert operator_sessions.read(Keys(b"t" * 32), token, NOW) is None


@given(st.integers(0, 200), st.characters(codec="ascii"))
def test_a_changed_session_is_none(position: int, character: str) -> None:
    token = operator_sessions.issue(KEYS, ADA)
    changed = token[: position % len(token)] + character + token[position % len(token) + 1 :]
    assert changed == token or operator_sessions.read(KEYS, changed, NOW) is None


@given(st.text(max_size=500))
def test_nonsense_is_no_session(text: str) -> None:
    assert operator_sessions.read(KEYS, operator_sessions.PREFIX + text, NOW) is None


def test_a_name_behind_the_token_in_the_file() -> None:
    first, second = (staff_tokens.generate("operator") for _ in range(2))
    known = StaffTokens.read(KEYS, "operator", f"{first} terraform\n\n{second}\n")
    assert known.who(KEYS, first) == "terraform"
    assert (known.who(KEYS, second) or "").startswith("operator ")
    with pytest.raises(ValueError, match="line 1"):
        StaffTokens.read(KEYS, "operator", f"{first} two names")


async def test_a_session_does_what_its_operator_may_and_makes_no_other(operator: httpx2.AsyncClient) -> None:
    ada = await session(operator)
    me = (await operator.get("/v1/operator/me", headers=ada)).json()
    assert me["name"] == "ada@example.com"
    assert datetime.fromisoformat(me["expires_at"]) - datetime.now(UTC) <= timedelta(hours=8)
    assert (await operator.get("/v1/operator/servers", headers=ada)).status_code == 200
    problem(await operator.post("/v1/operator/sessions", json={"name": "eve"}, headers=ada), 403, "permission_denied")
    problem(await operator.get("/v1/prober/targets", headers=ada), 401, "credentials_invalid")
    problem(await operator.get("/v1/me", headers=ada), 401, "credentials_invalid")
    too_long = await operator.post("/v1/operator/sessions", json={"name": "eve", "ttl_s": 13 * 3_600})
    problem(too_long, 422, "validation_failed")


async def test_each_change_is_in_the_operators_log_with_its_person(
    operator: httpx2.AsyncClient, alice: Customer, owner: psycopg.Connection, tmp_path: Path
) -> None:
    ada = await session(operator)
    assert (await operator.post("/v1/operator/servers/1/drain", headers=ada)).status_code == 200
    path = f"/v1/operator/organizations/{alice.organization_id}/suspension"
    assert (await operator.put(path, json={"reason": "Spam."}, headers=ada)).status_code == 200
    await operator.get("/v1/operator/servers", headers=ada)
    found = (await operator.get("/v1/operator/audit")).json()["items"]
    assert [(each["operation"], each["operator"]) for each in found][:2] == [
        ("suspend_organization", "ada@example.com"), ("drain_server", "ada@example.com"),
    ]  # fmt: skip
    assert found[2]["operation"] == "begin_operator_session"
    assert found[2]["session"] is None
    assert found[0]["session"] == found[1]["session"] is not None
    assert found[0]["request"] == {"reason": "Spam."}
    assert found[1]["subject"] == "/v1/operator/servers/1/drain"
    exported = tmp_path / "operators.jsonl"
    exported.write_text((await operator.get("/v1/operator/audit/export")).text)
    assert main.main(["audit-verify", str(exported)]) == 0
    with exported.open() as lines:
        count, _ = chain.check(chain.read_export(lines))
    assert count == len(found) == 3
    page = (await operator.get("/v1/operator/audit", params={"limit": 2})).json()
    rest = (await operator.get("/v1/operator/audit", params={"cursor": page["next_cursor"]})).json()
    assert page["items"] + rest["items"] == found
    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        owner.execute("DELETE FROM operator_events")


async def test_operators_calls_are_not_at_customers_address(
    services: Services, operator: httpx2.AsyncClient, alice: Customer
) -> None:
    """Operators have an address of their own here."""
    transport = httpx2.ASGITransport(app=Customers(application.build(services)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as customers:
        headers = dict(operator.headers)
        answer = await customers.get("/v1/operator/servers", headers=headers)
        assert "QUORATE_OPERATOR_LISTEN" in problem(answer, 404, "operator_elsewhere")["detail"]
        answer = await customers.post("/v1/operator/sessions", json={"name": "a"}, headers=headers)
        problem(answer, 404, "operator_elsewhere")
        quota = f"/v1/operator/organizations/{alice.organization_id}/quotas/projects"
        problem(await customers.delete(quota, headers=headers), 404, "operator_elsewhere")
        cookie = {"Cookie": f"quorate_session={alice.cookie}"}
        assert (await customers.get("/v1/me", headers=cookie)).status_code == 200
    assert (await operator.get("/v1/operator/servers")).status_code == 200


def test_the_command_prints_a_session(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", settings.database_url)
    monkeypatch.setenv("QUORATE_SECRET_FILE", str(settings.secret_file))
    assert main.main(["operator-session", "--name", "ada@example.com", "--hours", "1"]) == 0
    token = capsys.readouterr().out.strip()
    found = operator_sessions.read(Keys.of(settings.secrets()), token, datetime.now(UTC))
    assert found is not None
    assert found.name == "ada@example.com"
    assert timedelta(minutes=59) < found.until - datetime.now(UTC) <= timedelta(hours=1)
    assert main.main(["operator-session", "--name", "two words"]) == exit_codes.CONFIGURATION
    assert main.main(["operator-session", "--name", "ada", "--hours", "13"]) == exit_codes.CONFIGURATION
