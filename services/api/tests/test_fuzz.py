"""Schemathesis: every operation of the contract, with valid and broken input, for a bounded time."""

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from quorate_harness.figures import FOLDER, Figure, keep
from schemathesis import checks

from quorate_api import app as application
from quorate_api.coordinator.client import Coordinator
from quorate_api.security import key_files
from quorate_api.settings import Settings
from support.coordinator import FakeCoordinator
from support.customer import Customer, bearer

BUDGET_S = 35
# They succeed with secrets alone: a password, a code, a link from a mail, an answer of a passkey, a signature.
NEED_SECRETS = {
    "POST /v1/login",
    "POST /v1/login/passkey",
    "POST /v1/login/provider/begin",
    "POST /v1/login/provider",
    "POST /v1/signup/provider",
    "POST /v1/me/identities/begin",
    "POST /v1/me/identities",
    "POST /v1/password/reset",
    "POST /v1/invitations/look",
    "POST /v1/invitations/passkey",
    "POST /v1/invitations/accept",
    "POST /v1/me/email/verify",
    "POST /v1/me/invitations/accept",
    "POST /v1/me/passkeys",
    "POST /v1/me/totp/confirm",
    "POST /v1/payments/stripe/events",
}
EXAMPLES = 15  # per operation and kind (valid, broken); a slow machine reaches fewer


@pytest.fixture
def target(owner_url: str, redis_url: str, tmp_path: Path):  # type: ignore[no-untyped-def]
    """A customer with a key, and the API on its own loop, so that synchronous code can call it."""
    token_file = tmp_path / "token"
    token_file.write_text(FakeCoordinator.TOKEN)
    keys = Path(os.environ["TEST_KEYS_DIR"])
    made = application.make_services(
        Settings(
            database_url=owner_url,
            redis_url=redis_url,
            public_url="http://testserver",
            allow_http=True,
            coordinator_token_file=token_file,
            token_signing_key_file=keys / key_files.SIGNING_KEY_FILE,
            secret_file=keys / key_files.SECRET_FILE,
            operator_token_file=keys / key_files.STAFF_TOKEN_FILES["operator"],
            prober_token_file=keys / key_files.STAFF_TOKEN_FILES["prober"],
            password_memory_kib=8_192,
            signups_per_address="100000/hour",
        )
    )
    made.coordinator = Coordinator(
        ["http://coordinator"], FakeCoordinator.TOKEN, transport=httpx2.ASGITransport(app=FakeCoordinator().app)
    )
    app = application.build(made)
    with asyncio.Runner() as runner:

        async def prepare() -> tuple[httpx2.AsyncClient, Customer, dict[str, str]]:
            client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://testserver")
            customer = await Customer.sign_up(client, "fuzz@example.com")
            key = await customer.create_key(scopes=["append", "read", "manage", "billing"])
            return client, customer, bearer(key)

        client, customer, key = runner.run(prepare())
        yield runner, client, customer, key
        runner.run(client.aclose())
        runner.run(application.close(made))


@pytest.mark.timeout(300)  # its budget, and what a busy machine adds
def test_every_operation(target) -> None:  # type: ignore[no-untyped-def]
    runner, client, customer, key = target
    checks.load_all_checks()
    schema = schemathesis.openapi.from_dict(application.bare().openapi())
    group = runner.run(customer.create_group("fuzzed"))
    webhook = runner.run(customer.post("/v1/webhooks", {"url": "https://example.com/"})).json()
    ids = {
        "project_id": customer.project_id, "group_id": group["id"], "server_id": "1", "webhook_id": webhook["id"],
    }  # fmt: skip
    operations = [result.ok() for result in schema.get_all_operations()]
    operations = [each for each in operations if each.definition.raw["operationId"] != "stream_group"]
    share_s = BUDGET_S / len(operations) / 2  # for each operation and kind of input
    seen: dict[str, set[int]] = {}
    counts: dict[str, int] = {}
    as_person = {"Cookie": f"quorate_session={customer.cookie}", "X-CSRF-Token": customer.csrf_token}
    folder = Path(os.environ["TEST_KEYS_DIR"])
    staff = {
        kind: bearer({"secret": (folder / name).read_text().strip()})
        for kind, name in key_files.STAFF_TOKEN_FILES.items()
    }

    def credential(case: schemathesis.Case) -> dict[str, str]:
        raw = case.operation.definition.raw
        if raw["operationId"] in ("create_project", "create_key", "create_organization_key", "list_organization_keys"):
            return as_person
        if "webhooks" in raw["tags"]:
            return as_person
        return next((token for kind, token in staff.items() if kind in raw["tags"]), key)

    def send(case: schemathesis.Case, *, existing: bool) -> None:
        if existing and case.method != "DELETE":  # without it nearly every answer would be a 404
            case.path_parameters = {name: ids.get(name, value) for name, value in (case.path_parameters or {}).items()}
        kwargs = case.as_transport_kwargs(base_url="http://testserver")
        headers = dict(kwargs.get("headers") or {}) | credential(case)
        arguments = {name: kwargs[name] for name in ("params", "json", "data") if kwargs.get(name) is not None}
        if "data" in arguments:
            data = arguments.pop("data")
            arguments["content"] = data if isinstance(data, bytes | str) else str(data)
        encoded = [
            (name.encode("latin-1", "replace"), str(value).encode("latin-1", "replace"))
            for name, value in headers.items()
        ]
        answer = runner.run(client.request(kwargs["method"], kwargs["url"], headers=encoded, **arguments))
        client.cookies.clear()
        label = case.operation.label
        seen.setdefault(label, set()).add(answer.status_code)
        counts[label] = counts.get(label, 0) + 1
        assert answer.status_code < 500, (label, answer.text, arguments)
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == "application/problem+json", (label, answer.status_code)
        case.validate_response(
            schemathesis.Response(
                status_code=answer.status_code,
                headers={name: [value] for name, value in answer.headers.items()},
                content=answer.content,
                request=_prepared(kwargs),
                elapsed=0.1,
                verify=False,
            ),
            checks=[
                checks.CHECKS.get_one("response_schema_conformance"),
                checks.CHECKS.get_one("status_code_conformance"),
                checks.CHECKS.get_one("content_type_conformance"),
            ],
        )

    for operation in operations:
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            try:
                strategy = operation.as_strategy(generation_mode=mode)
            except schemathesis.errors.LoaderError:
                continue

            try:
                _run(strategy, partial(send, existing=mode is schemathesis.GenerationMode.POSITIVE), share_s)
            except Unsatisfiable:
                continue  # an operation without parameters has no broken input
    assert len(seen) == len(operations), "every operation was reached within the budget"
    cases = sum(counts.values())
    figures = [
        Figure("schemathesis_failures", 0, "cases", 0, note=f"of {cases} cases over {len(seen)} operations"),
        Figure("schemathesis_cases", cases, "cases"),
    ]
    keep(figures, "make test", FOLDER / "access.jsonl")
    succeeded = {label for label, statuses in seen.items() if any(status < 300 for status in statuses)}
    reachable = [operation for operation in operations if operation.label not in NEED_SECRETS]
    assert len(succeeded) > len(reachable) / 2, "the fuzzer reaches beyond validation"


def _run(strategy: Any, send: Callable[[schemathesis.Case], None], share_s: float) -> None:
    """At least one example; more while the operation's share of the budget lasts."""
    began, sent = time.monotonic(), 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def run(case: schemathesis.Case) -> None:
        nonlocal sent
        if sent == 0 or time.monotonic() < began + share_s:
            send(case)
            sent += 1

    run()


def _prepared(kwargs):  # type: ignore[no-untyped-def]
    import requests

    return requests.Request(kwargs["method"], kwargs["url"]).prepare()
