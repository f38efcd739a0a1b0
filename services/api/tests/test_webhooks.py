"""Webhooks: signed, told of everything once, tried again, never into private networks."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any

import httpx2
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from quorate_api import limits
from quorate_api.coordinator.schemas import Event
from quorate_api.events.catalogue import CATALOGUE, CHOSEN, EventType
from quorate_api.http.services import Services
from quorate_api.networks import is_public, parse_networks
from quorate_api.webhooks.retries import Answer, after, is_to_be_disabled
from quorate_api.webhooks.sender import Sender
from quorate_api.webhooks.transport import PublicOnly
from quorate_api.worker.dunning import remind
from quorate_api.worker.events import Asked, Follower
from quorate_api.worker.webhooks import Messenger, forget_events
from support.customer import Customer, bearer, problem
from support.invoices import issue
from support.receiver import Received, Receiver, receiving

NOW = datetime(2026, 11, 30, tzinfo=UTC)
LOCAL = parse_networks("127.0.0.0/8")
OK = Answer(200, None, 5)
REFUSED = Answer(500, "The receiver answered 500.", 5)
GONE = Answer(410, "The receiver answered 410.", 5)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "::ffff:10.0.0.1",
        "64:ff9b::a00:1", "2002:a00:1::1", "2001::1", "ff02::1", "2001:db8::1",
    ],
)  # fmt: skip
def test_private_addresses(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001:82f::200e"])
def test_public_addresses(address: str) -> None:
    assert is_public(ip_address(address))


@given(st.integers(1, 20))
def test_attempts_end_and_their_pauses_grow(attempts: int) -> None:
    following = after(attempts, REFUSED, NOW)
    if attempts > len(limits.WEBHOOK_PAUSES_S):
        assert (following.status, following.at) == ("failed", None)
    else:
        assert following.at == NOW + timedelta(seconds=limits.WEBHOOK_PAUSES_S[attempts - 1])
    assert after(attempts, OK, NOW).status == "delivered"
    assert after(attempts, GONE, NOW).status == "failed"


def test_a_receiver_that_is_gone_or_fails_for_days_gets_no_more() -> None:
    days = timedelta(seconds=limits.WEBHOOK_FAILING_S)
    assert is_to_be_disabled(GONE, None, NOW)
    assert is_to_be_disabled(REFUSED, NOW - days, NOW)
    assert not is_to_be_disabled(REFUSED, NOW - days + timedelta(seconds=1), NOW)
    assert not is_to_be_disabled(OK, NOW - days, NOW)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as each:
        yield each


@pytest.fixture(autouse=True)
def local_network(services: Services) -> None:
    services.settings = services.settings.model_copy(update={"webhook_networks": "127.0.0.0/8"})


@pytest.fixture
async def messenger(worker_engine: AsyncEngine, services: Services) -> AsyncIterator[Messenger]:
    made = Messenger(worker_engine, services.keys, Sender.over(PublicOnly(LOCAL)))
    yield made
    await made.aclose()


async def create(customer: Customer, receiver: Receiver, **asked: Any) -> dict[str, Any]:
    answer = await customer.post("/v1/webhooks", {"url": receiver.url(), **asked})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def deliver(messenger: Messenger) -> int:
    begun = 0
    while more := await messenger.run():
        begun += more
        await messenger.settle()
    return begun


async def deliveries(customer: Customer, webhook: dict[str, Any]) -> list[dict[str, Any]]:
    return list((await customer.get(f"/v1/webhooks/{webhook['id']}/deliveries"))["items"])


def make_due(owner: psycopg.Connection) -> None:
    owner.execute("UPDATE webhook_deliveries SET next_at = now() - interval '1 s' WHERE status = 'waiting'")


def verified(received: Received, secret: str) -> Any:
    return Webhook(secret).verify(received.body, received.headers)


async def test_an_event_arrives_signed_and_once(alice: Customer, receiver: Receiver, messenger: Messenger) -> None:
    webhook = await create(alice, receiver, event_types=["audit.recorded"])
    await alice.create_project("second")
    assert await deliver(messenger) == 2
    made, created = sorted(receiver.received, key=lambda each: json.loads(each.body)["data"]["seq"])
    assert json.loads(made.body)["data"]["operation"] == "create_webhook"
    message = verified(created, webhook["secret"])
    assert message["type"] == "audit.recorded"
    assert message["data"]["operation"] == "create_project"
    assert message["data"]["actor_name"] == alice.email
    with pytest.raises(WebhookVerificationError):
        verified(created, "whsec_" + "A" * 43)
    listed = (await alice.get("/v1/events", params={"type": "audit.recorded"}))["items"]
    assert listed[0]["id"] == created.headers["webhook-id"]
    assert listed[0]["data"] == message["data"]
    newest, *_ = await deliveries(alice, webhook)
    assert newest | {"id": 0, "last_at": 0, "last_duration_ms": 0} == {
        "id": 0, "event_id": listed[0]["id"], "event_type": "audit.recorded", "event_at": listed[0]["timestamp"],
        "status": "delivered", "attempts": 1, "next_at": None, "last_at": 0, "last_http_status": 200,
        "last_error": None, "last_duration_ms": 0,
    }  # fmt: skip


async def test_several_workers_send_each_event_once(
    alice: Customer, receiver: Receiver, worker_engine: AsyncEngine, services: Services
) -> None:
    await create(alice, receiver)
    for number in range(6):
        await alice.create_project(f"p{number}")
    messengers = [Messenger(worker_engine, services.keys, Sender.over(PublicOnly(LOCAL))) for _ in range(3)]
    await asyncio.gather(*(deliver(each) for each in messengers))
    await asyncio.gather(*(each.aclose() for each in messengers))
    ids = [each.headers["webhook-id"] for each in receiver.received]
    assert len(ids) == len(set(ids)) == 7


async def test_the_secret_is_sealed_and_shown_once(
    alice: Customer, receiver: Receiver, owner: psycopg.Connection
) -> None:
    webhook = await create(alice, receiver)
    assert webhook["secret"].startswith("whsec_")
    for (sealed,) in owner.execute("SELECT sealed FROM webhook_secrets").fetchall():
        assert webhook["secret"].removeprefix("whsec_").encode() not in sealed
    assert "secret" not in await alice.get(f"/v1/webhooks/{webhook['id']}")
    assert webhook["secret"] not in json.dumps(await alice.get("/v1/audit"))
    assert webhook["secret"] not in json.dumps(await alice.get("/v1/events"))


async def test_both_secrets_sign_during_a_rotation(alice: Customer, receiver: Receiver, messenger: Messenger) -> None:
    webhook = await create(alice, receiver)
    path = f"/v1/webhooks/{webhook['id']}"
    rotated = (await alice.post(f"{path}/rotate", {})).json()
    assert rotated["former_secret_until"] == (await alice.get(path))["former_secret_until"]
    await alice.post(f"{path}/test", {})
    await deliver(messenger)
    for secret in (webhook["secret"], rotated["secret"]):
        assert {verified(each, secret)["type"] for each in receiver.received} == {"audit.recorded", "webhook.test"}
    receiver.received.clear()
    last = (await alice.post(f"{path}/rotate", {"grace_s": 0})).json()
    await deliver(messenger)
    for each in receiver.received:
        verified(each, last["secret"])
        with pytest.raises(WebhookVerificationError):
            verified(each, rotated["secret"])
    assert receiver.received


async def test_a_failed_event_is_tried_again_and_can_be_sent_by_hand(
    alice: Customer, receiver: Receiver, messenger: Messenger, owner: psycopg.Connection
) -> None:
    webhook = await create(alice, receiver, event_types=["invoice.issued"])
    path = f"/v1/webhooks/{webhook['id']}"
    tested = (await alice.post(f"{path}/test", {})).json()
    assert (tested["status"], tested["event_type"]) == ("waiting", "webhook.test")
    receiver.answers = [503] * 10
    await deliver(messenger)
    (waiting,) = await deliveries(alice, webhook)
    assert (waiting["attempts"], waiting["last_http_status"]) == (1, 503)
    assert "503" in waiting["last_error"]
    assert (await alice.get(path))["failing_since"] is not None
    for _ in range(9):
        make_due(owner)
        await deliver(messenger)
    (failed,) = await deliveries(alice, webhook)
    assert (failed["status"], failed["attempts"], failed["next_at"]) == ("failed", 10, None)
    answer = await alice.post(f"{path}/deliveries/{failed['id']}/resend", {})
    assert answer.status_code == 202
    await deliver(messenger)
    (delivered,) = await deliveries(alice, webhook)
    assert (delivered["status"], delivered["attempts"]) == ("delivered", 1)
    assert len({each.headers["webhook-id"] for each in receiver.received}) == 1
    assert len({each.body for each in receiver.received}) == 1
    assert (await alice.get(path))["failing_since"] is None


async def test_gone_ends_a_webhook_until_it_is_enabled_and_replayed(
    alice: Customer, receiver: Receiver, messenger: Messenger
) -> None:
    since = datetime.now(UTC).isoformat()
    webhook = await create(alice, receiver, event_types=["audit.recorded"])
    path = f"/v1/webhooks/{webhook['id']}"
    receiver.answers = [410]
    await deliver(messenger)
    assert (await alice.get(path))["status"] == "disabled"
    await alice.create_project("unseen")
    assert await deliver(messenger) == 0
    change = {"url": receiver.url(), "event_types": ["audit.recorded"], "status": "enabled"}
    assert (await alice.request("PUT", path, json=change)).json()["status"] == "enabled"
    await deliver(messenger)
    receiver.received.clear()
    replayed = (await alice.post(f"{path}/replay", {"since": since})).json()
    assert replayed == {"count": 2, "next_since": None}
    await deliver(messenger)
    operations = {json.loads(each.body)["data"]["operation"] for each in receiver.received}
    assert {"create_webhook", "create_project"} <= operations
    count = len(await deliveries(alice, webhook))
    assert (await alice.post(f"{path}/replay", {"since": since})).json()["count"] <= 1, "the replay itself"
    again = (await alice.post(f"{path}/replay", {"since": since, "only_failed": False})).json()
    assert again["count"] >= count


async def test_a_paused_webhook_and_unchosen_types_get_nothing(
    alice: Customer, bob: Customer, receiver: Receiver, messenger: Messenger
) -> None:
    webhook = await create(alice, receiver, event_types=["invoice.issued"])
    await bob.create_project("of another organization")
    await alice.create_project("of another type")
    assert await deliver(messenger) == 0
    change = {"url": receiver.url(), "status": "paused"}
    assert (await alice.request("PUT", f"/v1/webhooks/{webhook['id']}", json=change)).status_code == 200
    await alice.create_project("while it is paused")
    assert await deliver(messenger) == 0
    assert receiver.received == []
    problem(await bob.request("GET", f"/v1/webhooks/{webhook['id']}"), 404, "not_found")


async def test_what_waits_for_a_paused_webhook_is_sent_by_a_replay(
    alice: Customer, receiver: Receiver, messenger: Messenger, owner: psycopg.Connection
) -> None:
    since = datetime.now(UTC).isoformat()
    webhook = await create(alice, receiver, event_types=["invoice.issued", "audit.recorded"])
    path = f"/v1/webhooks/{webhook['id']}"
    receiver.answers = [503]
    await deliver(messenger)
    change = {"url": receiver.url(), "event_types": ["audit.recorded"], "status": "paused"}
    assert (await alice.request("PUT", path, json=change)).status_code == 200
    make_due(owner)
    await deliver(messenger)
    (passed_by,) = await deliveries(alice, webhook)
    assert (passed_by["status"], passed_by["last_error"]) == ("failed", "Not sent: the webhook is paused or disabled.")
    assert len(receiver.received) == 1
    assert (await alice.request("PUT", path, json=change | {"status": "enabled"})).status_code == 200
    await deliver(messenger)
    await alice.post(f"{path}/replay", {"since": since})
    await deliver(messenger)
    assert {each["status"] for each in await deliveries(alice, webhook)} == {"delivered"}


async def test_redirects_are_not_followed(alice: Customer, receiver: Receiver, messenger: Messenger) -> None:
    webhook = await create(alice, receiver, event_types=["invoice.issued"])
    receiver.answers, receiver.location = [302], receiver.url().replace("/hook", "/inner")
    await alice.post(f"/v1/webhooks/{webhook['id']}/test", {})
    await deliver(messenger)
    (waiting,) = await deliveries(alice, webhook)
    assert waiting["last_http_status"] == 302
    assert "Redirects are not followed" in waiting["last_error"]
    assert [each.path for each in receiver.received] == ["/hook"]


async def test_names_that_lead_into_private_networks_are_not_reached(receiver: Receiver) -> None:
    async def private(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    sender = Sender.over(PublicOnly((), private))
    for url in (receiver.url(host="hooks.example.com"), receiver.url("https", "hooks.example.com")):
        answer = await sender.send(url, "msg_1", "{}", ["whsec_" + "A" * 43])
        assert answer.http_status is None
        assert answer.error == "Not sent: the name leads into a private network."
    literal = await sender.send(receiver.url(), "msg_1", "{}", ["whsec_" + "A" * 43])
    assert "private network" in str(literal.error)

    async def mixed(_host: str, _port: int) -> list[str]:
        return ["8.8.8.8", "127.0.0.1"]

    mixed_sender = Sender.over(PublicOnly((), mixed))
    answer = await mixed_sender.send(receiver.url("https", "hooks.example.com"), "msg_1", "{}", ["whsec_" + "A" * 43])
    assert "private network" in str(answer.error)
    await sender.aclose()
    await mixed_sender.aclose()
    assert receiver.received == []


async def test_the_name_is_resolved_once_for_each_attempt(receiver: Receiver) -> None:
    """The connection is to what was checked: no second look at DNS can lead elsewhere."""
    looked_up = []

    async def resolve(host: str, port: int) -> list[str]:
        looked_up.append((host, port))
        return ["127.0.0.2", "127.0.0.1"]  # nobody listens at the first

    sender = Sender.over(PublicOnly(LOCAL, resolve))
    answer = await sender.send(receiver.url(host="hooks.example.com"), "msg_1", "{}", ["whsec_" + "A" * 43])
    await sender.aclose()
    assert answer.is_received
    assert looked_up == [("hooks.example.com", receiver.port)]
    assert receiver.received[0].headers["host"] == f"hooks.example.com:{receiver.port}"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://10.0.0.1/", "private"), ("https://169.254.169.254/latest", "private"), ("https://[::1]/", "private"),
        ("https://[::ffff:10.0.0.1]/", "private"), ("ftp://example.com", "https://"), ("https://", "https://"),
        ("https://u:p@example.com/", "password"), ("https://example.com/#a", "fragment"), ("example.com", "https://"),
        ("https://example.com:99999/", "URL"), ("http://example.com/", "in the clear"),
    ],
)  # fmt: skip
async def test_urls_that_cannot_work_are_refused(url: str, why: str, alice: Customer, services: Services) -> None:
    services.settings = services.settings.model_copy(update={"webhook_networks": ""})
    body = problem(await alice.post("/v1/webhooks", {"url": url}), 422, "validation_failed")
    assert why in json.dumps(body)


async def test_a_receiver_that_does_not_answer_holds_up_nobody_else(
    alice: Customer, bob: Customer, receiver: Receiver, messenger: Messenger
) -> None:
    with receiving() as stuck:
        stuck.pause_s = 10
        for _ in range(3):
            await create(alice, stuck)
        for number in range(4):
            await alice.create_project(f"p{number}")
        await create(bob, receiver)
        await messenger.run()
        async with asyncio.timeout(5):
            while not receiver.received:
                await asyncio.sleep(0.01)
        assert len(stuck.received) <= limits.WEBHOOK_SENDS_PER_ORGANIZATION
        await messenger.run()
        assert len(stuck.received) <= limits.WEBHOOK_SENDS_PER_ORGANIZATION, "while those run"
        stuck.release.set()
        stuck.pause_s = 0
        await deliver(messenger)


async def test_a_receiver_that_sends_no_answer_ends_by_the_deadline(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WEBHOOK_TIMEOUT_S", 0.2)
    receiver.pause_s = 10
    sender = Sender.over(PublicOnly(LOCAL))
    answer = await sender.send(receiver.url(), "msg_1", "{}", ["whsec_" + "A" * 43])
    await sender.aclose()
    assert answer.duration_ms < 5_000
    assert "No answer within" in str(answer.error)


async def test_facts_become_events(
    alice: Customer, owner: psycopg.Connection, operator: httpx2.AsyncClient, worker_engine: AsyncEngine,
    services: Services,
) -> None:  # fmt: skip
    group = await alice.create_group()
    follower = Follower(worker_engine, services.coordinator)
    news = [
        Event(seq=seq, at=NOW, kind=kind, group_id=uuid.UUID(group["id"]), epoch=1, status=status, message="a server")
        for seq, kind, status in ((1, "group_status", "degraded"), (2, "group_relocation", None))
    ]
    await follower.apply(0, news, Asked())
    paid, overdue = issue(owner, alice, 5_000_000), issue(owner, alice, 7_000_000, due_in=timedelta(days=-4))
    entry = {"kind": "payment", "reference": "b-1", "amount_micros": 5_000_000}
    answer = await operator.post(f"/v1/operator/invoices/{paid}/payments", json=entry)
    assert answer.status_code == 201, answer.text
    await remind(worker_engine)
    await remind(worker_engine)
    found = (await alice.get("/v1/events"))["items"]
    by_type = {each["type"]: each["data"] for each in found}
    assert by_type["group.status_changed"]["status"] == "degraded"
    assert by_type["group.status_changed"]["group_id"] == group["id"]
    assert by_type["payment.received"]["invoice_id"] == paid
    assert by_type["payment.reminded"]["invoice_id"] == overdue
    assert len([each for each in found if each["type"] == "payment.reminded"]) == 1
    assert len([each for each in found if each["type"] == "group.status_changed"]) == 1
    for each in found:
        CATALOGUE[EventType(each["type"])].data.model_validate(each["data"])


async def test_events_are_kept_for_a_month(
    alice: Customer, receiver: Receiver, messenger: Messenger, owner: psycopg.Connection, worker_engine: AsyncEngine
) -> None:
    webhook = await create(alice, receiver)
    await deliver(messenger)
    assert await forget_events(worker_engine) == 0
    owner.execute("UPDATE events SET at = now() - interval '31 days'")
    assert await forget_events(worker_engine) == len((await alice.get("/v1/audit"))["items"])
    assert await deliveries(alice, webhook) == []


async def test_only_administrators_of_the_whole_organization(alice: Customer, receiver: Receiver) -> None:
    key = await alice.create_key()
    answer = await alice.api.post("/v1/webhooks", json={"url": receiver.url()}, headers=bearer(key))
    problem(answer, 403, "permission_denied")
    administrator = await alice.create_organization_key()
    answer = await alice.api.post("/v1/webhooks", json={"url": receiver.url()}, headers=bearer(administrator))
    assert answer.status_code == 201


async def test_their_number_is_bounded(alice: Customer, receiver: Receiver) -> None:
    for _ in range(limits.WEBHOOKS_MAX):
        await create(alice, receiver)
    problem(await alice.post("/v1/webhooks", {"url": receiver.url()}), 403, "quota_exceeded")


def test_each_type_can_be_chosen_but_the_test() -> None:
    assert set(CHOSEN) == set(EventType) - {EventType.WEBHOOK_TEST}
