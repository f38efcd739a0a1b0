"""Another secret of the API, without a gap: what was made under one is good under the other, and moves to it."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import httpx2
import psycopg
import pyotp
import pytest
from cryptography.exceptions import InvalidTag

from quorate_api import limits
from quorate_api.database import engine as database
from quorate_api.http.services import Services
from quorate_api.resealing import service as resealing
from quorate_api.security import key_files, operator_sessions, secret_rotation
from quorate_api.security.keys import Keys
from quorate_api.security.secret_rotation import SecretRotationRefused
from support.crashes import repeated
from support.customer import PASSWORD, Customer, bearer, problem
from support.mailbox import Mailbox

OLD, NEW = b"o" * 32, b"n" * 32
STAGES = {
    "prepared": Keys(OLD, (NEW,)),
    "switched": Keys(NEW, (OLD,)),
    "finished": Keys(NEW),
}


@pytest.fixture
def use(services: Services) -> Callable[[Keys], None]:
    services.keys = Keys(OLD)

    def use(keys: Keys) -> None:
        services.keys = keys

    return use


def test_each_secret_opens_and_verifies_and_the_present_one_seals() -> None:
    sealed, mac = Keys(OLD).seal("p", b"c", b"text"), Keys(OLD).mac("p", b"x")
    both = Keys.of([NEW, OLD])
    assert both.open("p", b"c", sealed) == b"text"
    assert both.verifies(mac, "p", b"x")
    assert both.verifies(mac[:16], "p", b"x")
    assert not both.verifies(mac[:15], "p", b"x")
    assert not both.verifies(b"", "p", b"x")
    assert not both.verifies(mac, "p", b"y")
    again = both.resealed("p", b"c", sealed)
    assert again is not None
    assert both.resealed("p", b"c", again) is None
    assert Keys(NEW).open("p", b"c", again) == b"text"
    with pytest.raises(InvalidTag):
        Keys(NEW).open("p", b"c", sealed)
    assert len({Keys(OLD).id, Keys(NEW).id, Keys(NEW, (OLD,)).id}) == 2


async def test_nobody_notices_an_exchange(
    use: Callable[[Keys], None], api: httpx2.AsyncClient, mailbox: Mailbox, owner: psycopg.Connection
) -> None:
    alice = await Customer.sign_up(api, "alice@example.com")
    link = await mailbox.link("alice@example.com")
    key = await alice.create_key(scopes=["append", "read", "manage"])
    begun = (await alice.post("/v1/me/totp", {})).json()
    assert (await alice.post("/v1/me/totp/confirm", {"code": pyotp.TOTP(begun["secret"]).now()})).status_code == 200
    once = await alice.post("/v1/projects", {"name": "once"}, key="same")
    for name in ("prepared", "switched"):
        use(STAGES[name])
        assert (await alice.get("/v1/me"))["user"]["email"] == "alice@example.com"
        assert (await api.get("/v1/me", headers=bearer(key))).status_code == 200
        again = await alice.post("/v1/projects", {"name": "once"}, key="same")
        assert again.json() == once.json(), "not a second time"
        await alice.create_key(name=name)  # the page's CSRF token is good
    assert (await alice.post("/v1/me/email/verify", {"token": link})).status_code == 204
    owner.execute("UPDATE totps SET last_step = 0")
    login = {"email": "alice@example.com", "password": PASSWORD, "code": pyotp.TOTP(begun["secret"]).now()}
    assert (await api.post("/v1/login", json=login)).status_code == 200
    api.cookies.clear()
    use(STAGES["finished"])
    assert (await alice.get("/v1/me"))["user"]["email_verified"], "the session was used since, and moved"
    assert (await api.get("/v1/me", headers=bearer(key))).status_code == 200, "and so was the key"


async def test_what_was_not_used_ends_with_the_former_secret(
    use: Callable[[Keys], None], api: httpx2.AsyncClient, owner_url: str
) -> None:
    alice = await Customer.sign_up(api, "alice@example.com")
    used, idle = await alice.create_key(), await alice.create_key()
    await alice.post("/v1/webhooks", {"url": "https://example.com/"})
    begun = (await alice.post("/v1/me/totp", {})).json()
    use(STAGES["switched"])
    assert (await api.get("/v1/me", headers=bearer(used))).status_code == 200
    engine = database.create(owner_url, database.NO_ROLE)
    try:
        found = await resealing.reseal(engine, STAGES["switched"])
        assert found == resealing.Resealed(rows=2, keys_left=1)
        assert (await resealing.reseal(engine, STAGES["switched"])).rows == 0
    finally:
        await engine.dispose()
    alice.csrf_token = (await alice.get("/v1/me"))["csrf_token"]
    use(STAGES["finished"])
    problem(await api.get("/v1/me", headers=bearer(idle)), 401, "credentials_invalid")
    answer = await alice.post("/v1/me/totp/confirm", {"code": pyotp.TOTP(begun["secret"]).now()})
    assert answer.status_code == 200, "the authenticator's secret was sealed anew"


def test_an_operators_session_outlives_the_switch() -> None:
    now = datetime.now(UTC)
    session = operator_sessions.OperatorSession(uuid4(), "ada", now + timedelta(hours=1))
    token = operator_sessions.issue(Keys(OLD), session)
    assert operator_sessions.read(STAGES["switched"], token, now) is not None
    assert operator_sessions.read(STAGES["finished"], token, now) is None


def test_three_steps_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / key_files.SECRET_FILE
    with pytest.raises(SecretRotationRefused, match="keys-init"):
        secret_rotation.run(tmp_path, "prepare")
    key_files.make_keys(tmp_path)
    (first,) = path.read_text().split()
    with pytest.raises(SecretRotationRefused, match="prepare comes first"):
        secret_rotation.run(tmp_path, "switch")
    for _ in range(2):
        secret_rotation.run(tmp_path, "prepare")
        assert path.read_text().split()[0] == first, "the next one is known, and not used"
    _, second = path.read_text().split()
    with pytest.raises(SecretRotationRefused, match="switch comes first"):
        secret_rotation.run(tmp_path, "finish")
    for _ in range(2):
        secret_rotation.run(tmp_path, "switch")
        assert path.read_text().split() == [second, first]
    with pytest.raises(SecretRotationRefused, match="last exchange is not over"):
        secret_rotation.run(tmp_path, "prepare")
    with pytest.raises(SecretRotationRefused, match="good for up to 24"):
        secret_rotation.run(tmp_path, "finish")
    past = path.stat().st_mtime - limits.SECRET_OVERLAP_S - 1
    os.utime(path, (past, past))
    for _ in range(2):
        secret_rotation.run(tmp_path, "finish")
        assert path.read_text().split() == [second]
    assert path.stat().st_mode & 0o077 == 0
    secret_rotation.run(tmp_path, "prepare")
    secret_rotation.run(tmp_path, "switch")
    secret_rotation.run(tmp_path, "finish", at_once=True)
    assert len(path.read_text().split()) == 1


def test_a_step_that_crashes_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each of its effects. The former secret never comes first again, and is the one that ends."""
    crashes = dict.fromkeys(secret_rotation.STEPS, 0)
    for number in range(8):
        folder = tmp_path / str(number)
        key_files.make_keys(folder)
        path = folder / key_files.SECRET_FILE
        (first,) = path.read_text().split()
        crashes["prepare"] += repeated(monkeypatch, number, partial(secret_rotation.run, folder, "prepare"))
        assert path.read_text().split()[0] == first
        _, second = path.read_text().split()
        crashes["switch"] += repeated(monkeypatch, number, partial(secret_rotation.run, folder, "switch"))
        assert path.read_text().split() == [second, first], f"a crash before effect {number}"
        finish = partial(secret_rotation.run, folder, "finish", at_once=True)
        crashes["finish"] += repeated(monkeypatch, number, finish)
        assert path.read_text().split() == [second]
    assert crashes == {"prepare": 4, "switch": 3, "finish": 2}, "a write removes an old draft first"


def test_a_mark_of_another_file_is_refused(tmp_path: Path) -> None:
    key_files.make_keys(tmp_path)
    secret_rotation.run(tmp_path, "prepare")
    (tmp_path / secret_rotation.MARK_FILE).write_text("0" * 64 + "\n")
    before = (tmp_path / key_files.SECRET_FILE).read_text()
    with pytest.raises(SecretRotationRefused, match="names no line"):
        secret_rotation.run(tmp_path, "switch")
    assert (tmp_path / key_files.SECRET_FILE).read_text() == before
