"""Members, roles and invitations."""

import httpx2
import psycopg
import pytest

from quorate_api.http.services import Services
from support.customer import PASSWORD, Customer, problem
from support.mailbox import Mailbox

CAROL = "carol@example.com"


@pytest.fixture
async def alice(mailbox: Mailbox, api: httpx2.AsyncClient) -> Customer:
    return await _verified(api, mailbox, "alice@example.com")


async def _verified(api: httpx2.AsyncClient, mailbox: Mailbox, email: str) -> Customer:
    customer = await Customer.sign_up(api, email)
    answer = await customer.post("/v1/me/email/verify", {"token": await mailbox.link(email)})
    assert answer.status_code == 204, answer.text
    return customer


async def invite(alice: Customer, email: str = CAROL, role: str = "developer") -> httpx2.Response:
    return await alice.post("/v1/organization/invitations", {"email": email, "role": role})


def session_of(api: httpx2.AsyncClient, answer: httpx2.Response, email: str) -> Customer:
    """The customer of a new session."""
    assert answer.status_code == 200, answer.text
    cookie, body = answer.cookies["quorate_session"], answer.json()
    api.cookies.clear()
    project_id = body["projects"][0]["id"]
    return Customer(api, email, cookie, body["csrf_token"], body["organization"]["id"], project_id)


async def join(alice: Customer, mailbox: Mailbox, email: str = CAROL, role: str = "developer") -> Customer:
    """A new person, who accepts an invitation."""
    assert (await invite(alice, email, role)).status_code == 201
    body = {"token": await mailbox.link(email), "password": PASSWORD}
    return session_of(alice.api, await alice.api.post("/v1/invitations/accept", json=body), email)


async def test_a_colleague_joins_with_a_new_account(alice: Customer, mailbox: Mailbox) -> None:
    assert (await invite(alice)).status_code == 201
    (waiting,) = (await alice.get("/v1/organization/invitations"))["items"]
    assert (waiting["email"], waiting["role"]) == (CAROL, "developer")
    token = await mailbox.link(CAROL)
    looked = await alice.api.post("/v1/invitations/look", json={"token": token})
    assert looked.json() == {
        "organization_name": "alice", "email": CAROL, "role": "developer", "has_account": False,
    }  # fmt: skip
    body = {"token": token, "password": PASSWORD}
    carol = session_of(alice.api, await alice.api.post("/v1/invitations/accept", json=body), CAROL)
    me = await carol.get("/v1/me")
    assert me["role"] == "developer"
    assert me["user"]["email_verified"], "the link proves the address"
    assert me["organization"]["id"] == alice.organization_id
    problem(await alice.api.post("/v1/invitations/accept", json=body), 409, "link_invalid")
    assert (await alice.get("/v1/organization/invitations"))["items"] == []
    listed = (await carol.get("/v1/organization/members"))["items"]
    assert [(each["email"], each["role"], each["is_you"]) for each in listed] == [
        ("alice@example.com", "owner", False), (CAROL, "developer", True),
    ]  # fmt: skip
    problem(await invite(alice), 409, "member_already")


async def test_who_has_an_account_joins_with_it_and_switches(
    alice: Customer, mailbox: Mailbox, api: httpx2.AsyncClient
) -> None:
    carol = await _verified(api, mailbox, CAROL)
    bob = await _verified(api, mailbox, "bob@example.com")
    assert (await invite(alice)).status_code == 201
    token = await mailbox.link(CAROL)
    assert (await api.post("/v1/invitations/look", json={"token": token})).json()["has_account"]
    problem(await api.post("/v1/invitations/accept", json={"token": token, "password": PASSWORD}), 409, "email_taken")
    problem(await bob.post("/v1/me/invitations/accept", {"token": token}), 403, "permission_denied")
    answer = await carol.post("/v1/me/invitations/accept", {"token": token})
    there = session_of(api, answer, CAROL)
    assert there.organization_id == alice.organization_id
    problem(await carol.request("GET", "/v1/me"), 401, "session_expired")  # its place was taken
    memberships = (await there.get("/v1/me"))["memberships"]
    assert {each["organization_id"]: each["role"] for each in memberships} == {
        carol.organization_id: "owner", alice.organization_id: "developer",
    }  # fmt: skip
    home = session_of(api, await there.post("/v1/me/organization", {"organization_id": carol.organization_id}), CAROL)
    assert (await home.get("/v1/me"))["role"] == "owner"
    problem(await home.post("/v1/me/organization", {"organization_id": bob.organization_id}), 404, "not_found")


async def test_an_invitation_is_withdrawn_replaced_or_too_old(
    alice: Customer, mailbox: Mailbox, owner: psycopg.Connection
) -> None:
    async def accept(token: str) -> httpx2.Response:
        return await alice.api.post("/v1/invitations/accept", json={"token": token, "password": PASSWORD})

    first = (await invite(alice), await mailbox.link(CAROL))[1]
    second = await invite(alice, role="viewer")
    token = await mailbox.link(CAROL)
    problem(await accept(first), 409, "link_invalid")
    (waiting,) = (await alice.get("/v1/organization/invitations"))["items"]
    assert (waiting["id"], waiting["role"]) == (second.json()["id"], "viewer")
    owner.execute("UPDATE invitations SET expires_at = now()")
    problem(await accept(token), 409, "link_invalid")
    third = await invite(alice)
    token = await mailbox.link(CAROL)
    address = f"/v1/organization/invitations/{third.json()['id']}"
    assert (await alice.request("DELETE", address)).status_code == 204
    problem(await alice.request("DELETE", address), 404, "not_found")
    problem(await accept(token), 409, "link_invalid")


async def test_only_who_is_verified_and_may_invites(
    alice: Customer, mailbox: Mailbox, api: httpx2.AsyncClient, services: Services
) -> None:
    unverified = await Customer.sign_up(api, "new@example.com")
    problem(await invite(unverified), 403, "permission_denied")
    carol = await join(alice, mailbox)
    problem(await invite(carol, "dave@example.com"), 403, "permission_denied")
    services.settings = services.settings.model_copy(update={"mail": "none"})
    problem(await invite(alice, "dave@example.com"), 409, "mail_off")


async def test_only_owners_touch_owners(alice: Customer, mailbox: Mailbox) -> None:
    admin = await join(alice, mailbox, "admin@example.com", "admin")
    carol = await join(alice, mailbox)
    ids = {each["email"]: each["user_id"] for each in (await alice.get("/v1/organization/members"))["items"]}

    def of(email: str) -> str:
        return f"/v1/organization/members/{ids[email]}"

    async def role(who: Customer, email: str, role: str) -> httpx2.Response:
        return await who.request("PATCH", of(email), json={"role": role})

    problem(await role(admin, "alice@example.com", "viewer"), 403, "permission_denied")
    problem(await role(admin, CAROL, "owner"), 403, "permission_denied")
    problem(await admin.request("DELETE", of("alice@example.com")), 403, "permission_denied")
    problem(await invite(admin, "x@example.com", "owner"), 403, "permission_denied")
    assert (await role(admin, CAROL, "billing")).json()["role"] == "billing"
    problem(await carol.request("GET", "/v1/me"), 401, "session_expired")  # its permissions have changed
    problem(await role(carol, CAROL, "owner"), 401, "session_expired")
    problem(await role(alice, "alice@example.com", "admin"), 409, "last_owner")
    problem(await alice.request("DELETE", of("alice@example.com")), 409, "last_owner")
    assert (await role(alice, "admin@example.com", "owner")).status_code == 200
    assert (await alice.request("DELETE", of("alice@example.com"))).status_code == 204, "she leaves"
    problem(await alice.request("GET", "/v1/me"), 401, "session_expired")
    body = {"email": "alice@example.com", "password": PASSWORD}
    problem(await alice.api.post("/v1/login", json=body), 403, "permission_denied")


async def test_roles_see_what_is_theirs(alice: Customer, mailbox: Mailbox) -> None:
    viewer = await join(alice, mailbox, "viewer@example.com", "viewer")
    for path in ("/v1/organization/members", "/v1/organization/invitations", f"/v1/projects/{alice.project_id}/keys"):
        problem(await viewer.request("GET", path), 403, "permission_denied")
    group = await alice.create_group()
    assert (await viewer.get(f"/v1/groups/{group['id']}"))["name"] == "orders"
    problem(await viewer.request("GET", f"/v1/groups/{group['id']}/handle"), 403, "permission_denied")
    own = [each["user_id"] for each in (await alice.get("/v1/organization/members"))["items"] if not each["is_you"]]
    assert (await viewer.request("DELETE", f"/v1/organization/members/{own[0]}")).status_code == 204, "anybody leaves"


async def test_keys_neither_see_nor_change_members_beyond_their_scopes(alice: Customer, mailbox: Mailbox) -> None:
    key = await alice.create_key()
    headers = {"Authorization": f"Bearer {key['secret']}"}
    problem(await alice.api.get("/v1/organization/members", headers=headers), 403, "permission_denied")
    administrator = {"Authorization": f"Bearer {(await alice.create_organization_key())['secret']}"}
    listed = (await alice.api.get("/v1/organization/members", headers=administrator)).json()["items"]
    body = {"email": CAROL, "role": "viewer"}
    answer = await alice.api.post("/v1/organization/invitations", json=body, headers=administrator)
    problem(answer, 403, "permission_denied")
    address = f"/v1/organization/members/{listed[0]['user_id']}"
    problem(await alice.api.delete(address, headers=administrator), 403, "permission_denied")
