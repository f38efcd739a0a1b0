"""Identities at a real identity provider: to sign up, log in, join and confirm; and providers that lie."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import psycopg
import pyotp
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from quorate_api import limits
from quorate_api.http.services import Services
from quorate_api.identities import attempt as attempts
from quorate_api.openid import providers
from quorate_api.openid.provider import AnswerRefused, Asked, Provider, ProviderUnavailable
from quorate_api.settings import ConfigurationError
from support.customer import Customer, problem
from support.mailbox import Mailbox
from support.provider import IdentityServer, serving

RETURN = "http://testserver/login/return"
CAROL = {"email": "Carol@example.com", "email_verified": True}


@pytest.fixture(scope="module")
def server() -> Iterator[IdentityServer]:
    with serving() as running:
        running.person("carol", **CAROL)
        running.person("mallory", email="alice@example.com", email_verified=True)
        running.person("dave", email="dave@example.com")
        yield running


@pytest.fixture
def provider(server: IdentityServer, services: Services, tmp_path: Path) -> str:
    client_id, secret = server.register(RETURN)
    secret_file = tmp_path / "provider-secret"
    secret_file.write_text(secret)
    secret_file.chmod(0o600)
    listed = tmp_path / "providers.toml"
    listed.write_text(
        f'[acme]\nname = "Acme"\nissuer = "{server.issuer}"\nclient_id = "{client_id}"\n'
        f'client_secret_file = "provider-secret"\n'
    )
    services.providers = providers.read(listed)
    return "acme"


async def shown(api: httpx2.AsyncClient, server: IdentityServer, subject: str) -> dict[str, str]:
    """The provider's answer to a browser that is not logged in."""
    begun = await api.post("/v1/login/provider/begin", json={"provider": "acme"})
    assert begun.status_code == 200, begun.text
    return server.log_in(begun.json()["url"], subject)


async def log_in(api: httpx2.AsyncClient, server: IdentityServer, subject: str, **more: str) -> dict[str, Any]:
    answer = await api.post("/v1/login/provider", json=await shown(api, server, subject) | more)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def connected(customer: Customer, server: IdentityServer, subject: str, path: str = "/v1/me/identities") -> Any:
    """The answer of the person who connects an identity; or, with another path, shows it there."""
    purpose = "confirm" if path.endswith("confirm") else "connect"
    begun = await customer.post("/v1/me/identities/begin", {"provider": "acme", "purpose": purpose})
    if begun.status_code != 200:
        return begun
    answer = server.log_in(begun.json()["url"], subject)
    cookies = f"quorate_session={customer.cookie}; quorate_identity={begun.cookies['quorate_identity']}"
    body = {"identity": answer} if path.endswith("confirm") else answer
    return await customer.request("POST", path, json=body, headers={"Cookie": cookies})


@pytest.mark.usefixtures("provider")
async def test_a_person_signs_up_and_logs_in(api: httpx2.AsyncClient, server: IdentityServer, mailbox: Mailbox) -> None:
    assert (await api.get("/v1/identity-providers")).json()["items"] == [{"id": "acme", "name": "Acme"}]
    first = await log_in(api, server, "carol")
    assert first == {"outcome": "account_needed", "email": "carol@example.com", "me": None}
    made = await api.post("/v1/signup/provider", json={"organization": "Acme Corp"})
    assert made.status_code == 201, made.text
    assert made.json()["user"]["email"] == "carol@example.com"
    assert made.json()["user"]["email_verified"]
    assert "quorate_identity" not in api.cookies
    problem(await api.post("/v1/signup/provider", json={"organization": "Again"}), 401, "identity_refused")
    api.cookies.clear()
    again = await log_in(api, server, "carol")
    assert again["outcome"] == "logged_in"
    assert again["me"]["organization"]["name"] == "Acme Corp"
    (known,) = (await api.get("/v1/me/identities")).json()["items"]
    assert known["provider_name"] == "Acme"
    assert known["last_used_at"] is not None
    assert not await mailbox.fetch("carol@example.com"), "the provider has verified the address"
    events = (await api.get("/v1/audit")).json()["items"]
    assert [event["operation"] for event in events] == ["log_in_with_provider", "sign_up_with_provider"]
    assert events[0]["request"]["code"] == "…"


@pytest.mark.usefixtures("provider", "mailbox")
async def test_an_address_that_the_provider_has_not_verified_is_not(
    api: httpx2.AsyncClient, server: IdentityServer
) -> None:
    assert (await log_in(api, server, "dave"))["outcome"] == "account_needed"
    made = await api.post("/v1/signup/provider", json={"organization": "Dave"})
    assert not made.json()["user"]["email_verified"]


@pytest.mark.usefixtures("provider")
async def test_an_address_alone_opens_no_account(
    alice: Customer, api: httpx2.AsyncClient, server: IdentityServer
) -> None:
    """A provider may say that anybody has Alice's address."""
    assert (await log_in(api, server, "mallory"))["outcome"] == "account_exists"
    taken = await api.post("/v1/signup/provider", json={"organization": "Evil"})
    problem(taken, 409, "email_taken")
    problem(await api.get("/v1/me"), 401, "not_authenticated")
    assert (await alice.get("/v1/me/identities"))["items"] == []


@pytest.mark.usefixtures("provider")
async def test_an_identity_is_connected_and_removed(
    alice: Customer, bob: Customer, api: httpx2.AsyncClient, server: IdentityServer, mailbox: Mailbox
) -> None:
    added = await connected(alice, server, "carol")
    assert added.status_code == 201, added.text
    assert added.json()["email"] == "carol@example.com", "not the account's address"
    (mail,) = [text for _, text in await mailbox.fetch("alice@example.com")]
    assert "Acme" in mail
    problem(await connected(bob, server, "carol"), 409, "name_taken")
    assert (await log_in(api, server, "carol"))["me"]["user"]["email"] == "alice@example.com"
    api.cookies.clear()
    path = f"/v1/me/identities/{added.json()['id']}"
    problem(await bob.request("DELETE", path), 404, "not_found")
    assert (await alice.request("DELETE", path)).status_code == 204
    assert (await log_in(api, server, "carol"))["outcome"] == "account_needed"


@pytest.mark.usefixtures("provider")
async def test_connecting_takes_a_fresh_confirmation_and_an_identity_gives_one(
    alice: Customer, owner: psycopg.Connection, server: IdentityServer
) -> None:
    assert (await connected(alice, server, "carol")).status_code == 201
    owner.execute("UPDATE sessions SET authenticated_at = now() - interval '1 hour'")
    problem(await connected(alice, server, "dave"), 403, "confirmation_required")
    problem(await connected(alice, server, "dave", "/v1/me/confirm"), 401, "credentials_invalid")
    problem(await alice.post("/v1/me/passkeys/begin", {}), 403, "confirmation_required")
    assert (await connected(alice, server, "carol", "/v1/me/confirm")).status_code == 204
    assert (await alice.post("/v1/me/passkeys/begin", {})).status_code == 200


@pytest.mark.usefixtures("provider")
async def test_an_identity_confirms_and_goes_in_an_organization_that_is_not_active(
    alice: Customer, owner: psycopg.Connection, server: IdentityServer
) -> None:
    first = await connected(alice, server, "carol")
    assert first.status_code == 201
    assert (await alice.post("/v1/organization/closure", {"name": "alice"})).status_code == 202
    owner.execute("UPDATE sessions SET authenticated_at = now() - interval '1 hour'")
    problem(await alice.request("DELETE", "/v1/organization/closure"), 403, "confirmation_required")
    assert (await connected(alice, server, "carol", "/v1/me/confirm")).status_code == 204
    assert (await connected(alice, server, "dave")).status_code == 201
    assert (await alice.request("DELETE", "/v1/organization/closure")).json()["standing"] == "active"
    owner.execute("UPDATE organizations SET suspended_at = now(), suspension_reason = 'spam'")
    assert (await alice.get("/v1/organization"))["standing"] == "suspended"
    removed = await alice.request("DELETE", f"/v1/me/identities/{first.json()['id']}")
    assert removed.status_code == 204, removed.text


async def test_a_log_in_long_ago_at_the_provider_confirms_nothing(
    alice: Customer, owner: psycopg.Connection, services: Services
) -> None:
    async def show(path: str, auth_time: float | None) -> httpx2.Response:
        services.providers = {"acme": lying("")}
        purpose = "confirm" if path.endswith("confirm") else "connect"
        begun = await alice.post("/v1/me/identities/begin", {"provider": "acme", "purpose": purpose})
        query = {name: values[0] for name, values in parse_qs(urlsplit(begun.json()["url"]).query).items()}
        at = None if auth_time is None else int(auth_time)
        services.providers = {"acme": lying(signed(nonce=query["nonce"], auth_time=at))}
        answer = {"state": query["state"], "code": "code"}
        body = {"identity": answer} if path.endswith("confirm") else answer
        cookies = f"quorate_session={alice.cookie}; quorate_identity={begun.cookies['quorate_identity']}"
        return await alice.request("POST", path, json=body, headers={"Cookie": cookies})

    assert (await show("/v1/me/identities", None)).status_code == 201
    owner.execute("UPDATE sessions SET authenticated_at = now() - interval '1 hour'")
    problem(await show("/v1/me/confirm", time.time() - 3_600), 401, "credentials_invalid")
    problem(await show("/v1/me/confirm", None), 401, "credentials_invalid")
    assert (await show("/v1/me/confirm", time.time())).status_code == 204


@pytest.mark.usefixtures("provider")
async def test_the_second_factor_is_asked_for(
    alice: Customer, api: httpx2.AsyncClient, server: IdentityServer, owner: psycopg.Connection
) -> None:
    assert (await connected(alice, server, "carol")).status_code == 201
    secret = (await alice.post("/v1/me/totp", {})).json()["secret"]
    totp = pyotp.TOTP(secret)
    assert (await alice.post("/v1/me/totp/confirm", {"code": totp.now()})).status_code == 200
    owner.execute("UPDATE totps SET last_step = 0")
    answer = await shown(api, server, "carol")
    first = await api.post("/v1/login/provider", json=answer)
    assert first.json() == {"outcome": "second_factor_required", "email": "carol@example.com", "me": None}
    problem(await api.post("/v1/login/provider", json=answer | {"second_factor": "000000"}), 401, "second_factor_wrong")
    second = await api.post("/v1/login/provider", json=answer | {"second_factor": totp.now()})
    assert second.json()["outcome"] == "logged_in", second.text


@pytest.mark.usefixtures("provider")
async def test_an_invitation_is_accepted_with_an_identity(
    alice: Customer, api: httpx2.AsyncClient, server: IdentityServer, mailbox: Mailbox, owner: psycopg.Connection
) -> None:
    owner.execute("UPDATE users SET email_verified_at = now()")
    asked = {"email": "eve@example.com", "role": "developer"}
    assert (await alice.post("/v1/organization/invitations", asked)).status_code == 201
    token = await mailbox.link("eve@example.com")
    answer = await shown(api, server, "carol")
    assert (await api.post("/v1/login/provider", json=answer)).json()["outcome"] == "account_needed"
    joined = await api.post("/v1/invitations/accept", json={"token": token, "identity": answer})
    assert joined.status_code == 200, joined.text
    assert joined.json()["user"]["email"] == "eve@example.com", "the invited address, which the link proves"
    api.cookies.clear()
    assert (await log_in(api, server, "carol"))["me"]["role"] == "developer"


@pytest.mark.usefixtures("provider")
async def test_an_answer_is_good_in_the_browser_that_asked_alone(
    alice: Customer, api: httpx2.AsyncClient, server: IdentityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = await shown(api, server, "carol")
    mine = dict(api.cookies)
    api.cookies.clear()
    problem(await api.post("/v1/login/provider", json=answer), 401, "identity_refused")
    await shown(api, server, "carol")  # another attempt in this browser
    problem(await api.post("/v1/login/provider", json=answer), 401, "identity_refused")
    api.cookies.clear()
    cookies = f"quorate_session={alice.cookie}; quorate_identity={mine['quorate_identity']}"
    theirs = await alice.request("POST", "/v1/me/identities", json=answer, headers={"Cookie": cookies})
    problem(theirs, 401, "identity_refused")
    api.cookies.set("quorate_identity", mine["quorate_identity"][:-8] + "AAAAAAA=")
    problem(await api.post("/v1/login/provider", json=answer), 401, "identity_refused")
    api.cookies.clear()
    late = await shown(api, server, "carol")
    now = attempts._now()
    monkeypatch.setattr(attempts, "_now", lambda: now + limits.IDENTITY_ATTEMPT_S + 1)
    problem(await api.post("/v1/login/provider", json=late), 401, "identity_refused")


@pytest.mark.usefixtures("provider")
async def test_a_code_is_good_once(api: httpx2.AsyncClient, server: IdentityServer) -> None:
    answer = await shown(api, server, "carol")
    cookie = api.cookies["quorate_identity"]
    assert (await api.post("/v1/login/provider", json=answer)).status_code == 200
    api.cookies.clear()
    api.cookies.set("quorate_identity", cookie)
    problem(await api.post("/v1/login/provider", json=answer), 401, "identity_refused")


async def test_a_provider_that_is_away(api: httpx2.AsyncClient, services: Services) -> None:
    services.providers = {"acme": Provider("acme", "Acme", "http://127.0.0.1:1", "id", "secret")}
    answer = await api.post("/v1/login/provider/begin", json={"provider": "acme"})
    problem(answer, 503, "identity_provider_unavailable")
    assert answer.headers["retry-after"] == "5"
    problem(await api.post("/v1/login/provider/begin", json={"provider": "other"}), 404, "not_found")


ISSUER = "https://login.example.com"
ASKED = Asked("state", "nonce", "verifier")
KEY, OTHER = (rsa.generate_private_key(public_exponent=65_537, key_size=2_048) for _ in range(2))


def claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    return {
        "iss": ISSUER, "sub": "1", "aud": "client", "iat": now, "exp": now + 60, "nonce": "nonce",
        "email": "a@example.com",
    } | more  # fmt: skip


def signed(key: Any = KEY, algorithm: str = "RS256", kid: str = "k1", **more: Any) -> str:
    wanted = {name: value for name, value in claims(**more).items() if value is not None}
    return jwt.encode(wanted, key, algorithm=algorithm, headers={"kid": kid})


def lying(token: str, user_info: dict[str, Any] | None = None, issuer: str = ISSUER, **metadata: Any) -> Provider:
    """A provider that answers every code with this token."""
    described = {
        "issuer": issuer, "authorization_endpoint": f"{ISSUER}/authorize?tenant=1",
        "token_endpoint": f"{ISSUER}/token", "jwks_uri": f"{ISSUER}/keys", "userinfo_endpoint": f"{ISSUER}/me",
    } | metadata  # fmt: skip
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key())) | {"kid": "k1"}
    answers = {
        "/.well-known/openid-configuration": described,
        "/keys": {"keys": [public]},
        "/token": {"id_token": token, "access_token": "at"},
        "/me": user_info or {},
    }

    def handle(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json=answers[request.url.path])

    return Provider("acme", "Acme", ISSUER, "client", "secret", httpx2.MockTransport(handle))


async def test_a_right_token_is_taken() -> None:
    found = await lying(signed()).identity(ASKED, RETURN, "code")
    assert (found.subject, found.email, found.email_verified) == ("1", "a@example.com", False)
    address = urlsplit(await lying("").url(ASKED, RETURN, anew=True))
    query = {name: values[0] for name, values in parse_qs(address.query).items()}
    assert query["tenant"] == "1"
    assert query["code_challenge_method"] == "S256"
    assert "verifier" not in address.query
    assert query["max_age"] == "0"


async def test_an_issuer_is_taken_as_it_is_written(tmp_path: Path) -> None:
    """Auth0's ends with a slash, and stands so in its description and tokens."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "providers.toml").write_text(
        f'[acme]\nname="A"\nissuer="{ISSUER}/"\nclient_id="client"\nclient_secret_file="secret"\n'
    )
    provider = providers.read(tmp_path / "providers.toml")["acme"]
    assert provider.issuer == f"{ISSUER}/"
    provider.transport = lying(signed(iss=f"{ISSUER}/"), issuer=f"{ISSUER}/").transport
    assert (await provider.identity(ASKED, RETURN, "code")).subject == "1"
    provider.transport = lying(signed()).transport
    with pytest.raises(AnswerRefused, match="issuer"):
        await provider.identity(ASKED, RETURN, "code")
    other = Provider("acme", "Acme", ISSUER, "client", "secret", lying("", issuer=f"{ISSUER}/").transport)
    with pytest.raises(ProviderUnavailable, match="its issuer is"):
        await other.url(ASKED, RETURN, anew=False)


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(lambda: signed(nonce="other"), id="another attempt"),
        pytest.param(lambda: signed(nonce=None), id="no attempt"),
        pytest.param(lambda: signed(aud="other"), id="another service"),
        pytest.param(lambda: signed(aud=["client", "other"], azp="other"), id="for another service"),
        pytest.param(lambda: signed(iss="https://evil.example.com"), id="another issuer"),
        pytest.param(lambda: signed(exp=int(time.time()) - 3_600), id="too old"),
        pytest.param(lambda: signed(exp=None), id="without end"),
        pytest.param(lambda: signed(sub=None), id="nobody"),
        pytest.param(lambda: signed(sub="x" * 256), id="too long a name"),
        pytest.param(lambda: signed(OTHER), id="another key"),
        pytest.param(lambda: signed(kid="k2"), id="unknown key"),
        pytest.param(lambda: jwt.encode(claims(), None, algorithm="none", headers={"kid": "k1"}), id="unsigned"),
        pytest.param(lambda: signed("s" * 32, "HS256"), id="signed with a secret"),
        pytest.param(lambda: signed(email="x"), id="no address"),
        pytest.param(lambda: signed(email="a@example.com\r\nBcc: b@example.com"), id="two addresses"),
        pytest.param(lambda: "x.y", id="no token"),
        pytest.param(lambda: "", id="nothing"),
    ],
)
async def test_a_wrong_token_is_refused(token: Callable[[], str]) -> None:
    with pytest.raises(AnswerRefused):
        await lying(token()).identity(ASKED, RETURN, "code")


async def test_the_address_may_come_separately_and_of_the_same_person_alone() -> None:
    told = {"sub": "1", "email": "b@example.com", "email_verified": True}
    found = await lying(signed(email=None), told).identity(ASKED, RETURN, "code")
    assert (found.email, found.email_verified) == ("b@example.com", True)
    with pytest.raises(AnswerRefused, match="two people"):
        await lying(signed(email=None), told | {"sub": "2"}).identity(ASKED, RETURN, "code")


@pytest.mark.parametrize("metadata", [{"issuer": "https://evil.example.com"}, {"token_endpoint": None}])
async def test_a_provider_that_is_described_wrongly_is_not_used(metadata: dict[str, Any]) -> None:
    with pytest.raises(ProviderUnavailable):
        await lying(signed(), **metadata).url(ASKED, RETURN, anew=False)


async def test_a_provider_that_failed_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def handle(_request: httpx2.Request) -> httpx2.Response:
        nonlocal asked
        asked += 1
        return httpx2.Response(500)

    provider = Provider("acme", "Acme", ISSUER, "client", "secret", httpx2.MockTransport(handle))
    for _ in range(3):
        with pytest.raises(ProviderUnavailable):
            await provider.url(ASKED, RETURN, anew=False)
    assert asked == 1
    monkeypatch.setattr(provider, "_away_until", 0.0)
    with pytest.raises(ProviderUnavailable):
        await provider.url(ASKED, RETURN, anew=False)
    assert asked == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[Acme]\n", "small letters"),
        ("[acme]\n", "client_id"),
        ('[acme]\nname="A"\nissuer="http://example.com"\nclient_id="c"\nclient_secret_file="s"\n', "https"),
        (
            '[acme]\nname="A"\nissuer="https://example.com"\nclient_id="c"\nclient_secret_file="none"\n',
            "cannot be read",
        ),
        ('[acme]\nname="A"\nissuer="https://example.com"\nclient_id="c"\nclient_secret_file="open"\n', "everybody"),
        ("no toml", "cannot be read"),
    ],
)
def test_a_wrong_file_of_providers_says_why(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "open").write_text("secret")
    (tmp_path / "open").chmod(0o644)
    (tmp_path / "providers.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=why):
        providers.read(tmp_path / "providers.toml")
