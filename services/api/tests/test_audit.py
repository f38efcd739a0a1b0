"""The audit log: each change by whom and from where, without secrets, in a chain that shows what was changed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate_api import exit_codes, limits, main
from quorate_api.audit import chain
from quorate_api.audit.chain import ChainBroken, Linked
from support.access import ORDERED, TAKE_BODIES, things_of
from support.customer import PASSWORD, Customer, bearer, problem


async def events_of(customer: Customer) -> list[dict[str, Any]]:
    """Oldest first."""
    items = (await customer.get("/v1/audit", params={"limit": 200}))["items"]
    return list(reversed(items))


async def test_each_change_is_recorded_by_whom_and_with_what(alice: Customer) -> None:
    key = await alice.create_key(scopes=["append", "manage"])
    group = await alice.create_group()
    answer = await alice.api.delete(f"/v1/groups/{group['id']}", headers=bearer(key) | {"User-Agent": "terraform/1"})
    assert answer.status_code == 204
    events = await events_of(alice)
    assert [each["operation"] for each in events] == ["sign_up", "create_key", "create_group", "delete_group"]
    assert [each["seq"] for each in events] == [1, 2, 3, 4]
    signed_up, made, created, deleted = events
    assert signed_up["actor"]["kind"] == made["actor"]["kind"] == "person"
    assert made["actor"]["name"] == alice.email
    assert made["created_id"] == key["id"]
    assert made["request"]["scopes"] == ["append", "manage"]
    assert created["subject"] == f"/v1/projects/{alice.project_id}/groups"
    assert (deleted["actor"]["kind"], deleted["actor"]["name"]) == ("key", "ci")
    assert deleted["actor"]["id"] == key["id"]
    assert deleted["user_agent"] == "terraform/1"
    assert deleted["request"] is None


async def test_no_secret_is_in_it(alice: Customer, owner: psycopg.Connection) -> None:
    key = await alice.create_key()
    await alice.post("/v1/me/confirm", {"password": PASSWORD})
    await alice.post("/v1/me/password", {"password": PASSWORD, "new_password": "another horse battery"})
    rotated = (await alice.post(f"/v1/keys/{key['id']}/rotate", {})).json()
    text = " ".join(str(row) for row in owner.execute("SELECT event FROM audit_events").fetchall())
    assert "rotate_key" in text
    for secret in (PASSWORD, "another horse battery", key["secret"], rotated["secret"], alice.cookie, alice.csrf_token):
        assert secret not in text


async def test_what_changed_nothing_is_not_in_it(alice: Customer) -> None:
    before = len(await events_of(alice))
    await alice.get("/v1/me")
    problem(await alice.post("/v1/projects", {"name": "default"}), 409, "name_taken")
    problem(await alice.post("/v1/projects", {}), 422, "validation_failed")
    assert len(await events_of(alice)) == before


ODD = [b"x", b'{"a":"\\ud800"}', b"\xff\xfe", b"[" * 20_000, b'{"a":NaN}', b'{"a":"' + b"x" * 60_000 + b'"}']


@pytest.mark.parametrize("raw", ODD, ids=lambda raw: repr(raw[:12]))
async def test_a_body_that_nobody_asked_for_hinders_no_change(alice: Customer, raw: bytes) -> None:
    key = await alice.create_key()
    headers = {"Content-Type": "application/json"}
    answer = await alice.request("DELETE", f"/v1/keys/{key['id']}", content=raw, headers=headers)
    assert answer.status_code == 204, answer.text
    problem(await alice.api.get("/v1/me", headers=bearer(key)), 401, "credentials_invalid")
    event = (await events_of(alice))[-1]
    assert (event["operation"], event["request"]) == ("revoke_key", None)
    chain.check(chain.read_export((await export_of(alice)).splitlines()))


async def test_operations_without_a_body_record_none(alice: Customer, owner: psycopg.Connection) -> None:
    own = await things_of(alice, owner)
    before = len(await events_of(alice))
    bodyless = [each for each in ORDERED if each[0] != "GET" and each[2] not in TAKE_BODIES]
    answers = {}
    for method, path, operation in bodyless:
        headers = {"Content-Type": "application/json"}
        answer = await alice.request(method, path.format(**own), content=b'{"a":"\\ud800"}', headers=headers)
        assert answer.status_code < 500, (operation, answer.text)
        answers[operation] = answer.status_code
    done = {operation for operation, status in answers.items() if status < 400}
    assert done >= {"revoke_key", "delete_group", "delete_webhook", "remove_member", "reopen_organization"}, answers
    events = owner.execute("SELECT event::json FROM audit_events WHERE seq > %s ORDER BY seq", (before,)).fetchall()
    assert {event["type"].removeprefix(chain.TYPE) for (event,) in events} == done
    assert {event["data"]["request"] for (event,) in events} == {None}


async def test_a_long_body_is_cut(alice: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AUDIT_REQUEST_CHARACTERS_MAX", 20)
    await alice.create_project("short")
    await alice.create_project("a longer name")
    assert [each["request"] for each in await events_of(alice)][1:] == [{"name": "short"}, '{"name":"a longer na…']


async def test_a_repetition_is_one_change(alice: Customer) -> None:
    for _ in range(3):
        assert (await alice.post("/v1/projects", {"name": "once"}, "same-key")).status_code == 201
    assert [each["operation"] for each in await events_of(alice)].count("create_project") == 1


async def test_changes_at_the_same_time_make_one_chain(alice: Customer, tmp_path: Path) -> None:
    made = await asyncio.gather(*(alice.create_key(name=f"k{number}") for number in range(15)))
    assert len(made) == 15
    count, _ = chain.check(chain.read_export((await export_of(alice)).splitlines()))
    assert count == 16


async def export_of(customer: Customer) -> str:
    answer = await customer.request("GET", "/v1/audit/export")
    assert answer.status_code == 200, answer.text
    assert "attachment" in answer.headers["content-disposition"]
    return answer.text


async def test_an_export_is_checked_by_a_command(
    alice: Customer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "c"):
        await alice.create_project(name)
    text = await export_of(alice)
    file = tmp_path / "audit.jsonl"

    def verify(text: str) -> int:
        file.write_text(text)
        return main.main(["audit-verify", str(file)])

    assert verify(text) == 0
    last = (await events_of(alice))[-1]
    assert f"4 events, none changed, missing or moved. Hash of the last: {last['hash']}" in capsys.readouterr().out
    lines = text.splitlines(keepends=True)
    changed = lines[2].replace('\\"name\\":\\"b\\"', '\\"name\\":\\"x\\"')
    assert changed != lines[2]
    for broken, where in (
        ([*lines[:2], changed, *lines[3:]], "event 3 was changed"),
        (lines[:1] + lines[2:], "event 2 is missing"),
        ([lines[0], lines[2], lines[1], lines[3]], "event 2 is missing"),
        ([*lines, "nonsense\n"], "line 5 is no line"),
    ):
        assert verify("".join(broken)) == exit_codes.FAILED
        assert where in capsys.readouterr().err


async def test_nobody_rewrites_it(alice: Customer, owner: psycopg.Connection) -> None:
    for statement in ("UPDATE audit_events SET event = ''", "DELETE FROM audit_events", "TRUNCATE audit_events"):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)


async def test_it_is_the_organizations_own(alice: Customer, bob: Customer, api: httpx2.AsyncClient) -> None:
    await alice.create_project("hers")
    assert "hers" not in json.dumps(await events_of(bob))
    assert "hers" not in await export_of(bob)


async def test_pages_go_back_to_the_first(alice: Customer) -> None:
    for number in range(5):
        await alice.create_project(f"p{number}")
    seen: list[int] = []
    cursor: dict[str, str] = {}
    while True:
        page = await alice.get("/v1/audit", params={"limit": 2, **cursor})
        seen += [each["seq"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == [6, 5, 4, 3, 2, 1]


@settings(deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=6), st.data())
def test_any_change_breaks_the_chain(texts: list[str], data: st.DataObject) -> None:
    before, events = chain.BEGIN, []
    for seq, text in enumerate(texts, 1):
        before = chain.hash_of(before, text)
        events.append(Linked(seq, text, before))
    assert chain.check(events) == (len(events), before)
    place = data.draw(st.integers(0, len(events) - 1))
    other = data.draw(st.text(max_size=20).filter(lambda text: text != texts[place]))
    changed = [*events]
    changed[place] = Linked(place + 1, other, events[place].hash)
    with pytest.raises(ChainBroken):
        chain.check(changed)
