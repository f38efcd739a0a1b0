"""The control client against a transport that answers as the API does."""

import asyncio
import json

import httpx2
import pytest

from quorate import control
from quorate.sync import Control as SyncControl


class Api:
    """Answers from a list, and records the requests."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def call(api, work, **options):
    async def run():
        async with control.Control(
            "https://api.example", "qk_test", transport=httpx2.MockTransport(api), **options
        ) as client:
            return await work(client)

    return asyncio.run(run())


def problem(status, code, **fields):
    return httpx2.Response(status, json={"code": code, "title": "t", "detail": "d", "request_id": "r1", **fields})


def test_asks_for_a_handle():
    handle = {
        "group_id": "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f",
        "endpoints": [{"server_id": 1, "address": "h:1", "role": "head"}],
        "token": "t",
    }
    api = Api(httpx2.Response(200, json=handle))
    assert call(api, lambda c: c.handle("01930f3c-5f4e-7cc3-98c4-dc0c0c07398f")).addresses() == ["h:1"]
    (request,) = api.requests
    assert request.url.path == "/v1/groups/01930f3c-5f4e-7cc3-98c4-dc0c0c07398f/handle"
    assert request.headers["authorization"] == "Bearer qk_test"
    assert "idempotency-key" not in request.headers


def test_retries_a_post_under_one_idempotency_key():
    api = Api(
        httpx2.ConnectError("no"),
        httpx2.Response(503),
        problem(409, "idempotency_in_progress"),
        httpx2.Response(201, json={"id": "g"}),
    )
    sla = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 10}
    assert call(api, lambda c: c.create_group("p/1", "orders", sla)) == {"id": "g"}
    assert len({request.headers["idempotency-key"] for request in api.requests}) == 1
    assert api.requests[0].url.raw_path == b"/v1/projects/p%2F1/groups"
    assert json.loads(api.requests[3].content) == {"name": "orders", **sla}


def test_two_calls_have_two_keys():
    api = Api(httpx2.Response(201, json={}), httpx2.Response(201, json={}))

    async def twice(client):
        await client.create_project("a")
        await client.create_project("a")

    call(api, twice)
    assert len({request.headers["idempotency-key"] for request in api.requests}) == 2


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (401, "unauthorized", control.AuthenticationFailed),
        (403, "forbidden", control.NotAllowed),
        (404, "not_found", control.NotFound),
        (409, "admission_refused", control.AdmissionRefused),
        (422, "validation_failed", control.ApiError),
        (500, "internal", control.ApiError),
    ],
)
def test_problems_become_typed_errors(status, code, error):
    fields = {"refusal": {"scarce_resource": "cpu"}, "errors": [{"field": "rate_per_s", "message": "too small"}]}
    api = Api(problem(status, code, **fields))
    with pytest.raises(error) as caught:
        call(api, lambda c: c.group("g"))
    assert type(caught.value) is error
    assert (caught.value.code, caught.value.request_id) == (code, "r1")
    assert "rate_per_s: too small" in str(caught.value)
    if error is control.AdmissionRefused:
        assert caught.value.refusal["scarce_resource"] == "cpu"


def test_an_answer_that_is_not_the_api_s_is_an_error_not_a_crash():
    for response in (httpx2.Response(200, text="<html>"), httpx2.Response(200, json=[1])):
        with pytest.raises(control.ApiUnreachable):
            call(Api(*[response] * 9), lambda c: c.group("g"), timeout=0.3)
    with pytest.raises(control.ApiError, match="404"):
        call(Api(httpx2.Response(404, text="<html>")), lambda c: c.group("g"))


def test_gives_up_after_a_bounded_number_of_tries():
    api = Api(*[httpx2.ConnectError("refused")] * 20)
    with pytest.raises(control.ApiUnreachable, match="refused"):
        call(api, lambda c: c.group("g"))
    assert len(api.requests) == control.ATTEMPTS_MAX


def test_does_not_wait_beyond_its_deadline():
    api = Api(httpx2.Response(429, headers={"Retry-After": "3600"}, json={"code": "rate_limited"}))
    with pytest.raises(control.ApiError, match="rate_limited"):
        call(api, lambda c: c.group("g"), timeout=1.0)


def test_follows_cursors():
    pages = ({"items": [{"id": 1}], "next_cursor": "c"}, {"items": [{"id": 2}], "next_cursor": None})
    api = Api(*(httpx2.Response(200, json=page) for page in pages))

    async def collect(client):
        return [item["id"] async for item in client.groups("p")]

    assert call(api, collect) == [1, 2]
    assert api.requests[1].url.query == b"cursor=c"


def test_resizes():
    api = Api(httpx2.ConnectError("refused"), problem(409, "admission_refused", refusal={"scarce_resource": "cpu"}))
    with pytest.raises(control.AdmissionRefused):
        call(api, lambda c: c.resize_group("g/1", {"rate_per_s": 10, "retention_age_s": None}))
    (request,) = {(request.method, request.url.raw_path) for request in api.requests}
    assert request == ("PATCH", b"/v1/groups/g%2F1")
    assert json.loads(api.requests[1].content) == {"rate_per_s": 10, "retention_age_s": None}


def test_gives_a_project_a_guarantee_and_takes_it_back():
    api = Api(*(httpx2.Response(200, json={"ok": True}) for _ in range(3)), httpx2.Response(204))
    terms = {"shared_tokens_per_s": 5, "policy": {"name": "first_fit", "groups": [{"group_id": "g"}]}}

    async def work(client):
        await client.quote_guarantee("p/1", terms)
        await client.set_guarantee("p/1", terms)
        await client.guarantee("p/1")
        await client.take_back_guarantee("p/1")

    call(api, work)
    asked = [f"{request.method} {request.url.raw_path.decode()}" for request in api.requests]
    path = "/v1/projects/p%2F1/guarantee"
    assert asked == [f"POST {path}/quote", f"PUT {path}", f"GET {path}", f"DELETE {path}"]
    assert json.loads(api.requests[1].content) == terms


def test_deletes_and_reports():
    api = Api(httpx2.Response(204), *(httpx2.Response(200, json={"ok": True}) for _ in range(3)))

    async def work(client):
        await client.delete_group("g")
        await client.usage("g")
        await client.sla("g")
        await client.invoice()

    call(api, work)
    paths = [f"{request.method} {request.url.path}" for request in api.requests]
    assert paths == [
        "DELETE /v1/groups/g",
        "GET /v1/groups/g/usage",
        "GET /v1/groups/g/sla",
        "GET /v1/invoices/current",
    ]


@pytest.mark.parametrize(("url", "key"), [("api.example", "qk_x"), ("https://api.example", "secret")])
def test_rejects_what_cannot_work(url, key):
    with pytest.raises(ValueError, match=r"https://|qk_"):
        control.Control(url, key)


def test_the_sync_face_waits(monkeypatch):
    api = Api(
        httpx2.Response(200, json={"items": [{"id": "a"}], "next_cursor": None}), httpx2.Response(200, json={"id": "g"})
    )
    with SyncControl("https://api.example", "qk_test") as client:
        client._control._http = httpx2.AsyncClient(
            base_url="https://api.example/v1/", transport=httpx2.MockTransport(api)
        )
        assert client.groups("p") == [{"id": "a"}]
        assert client.group("g") == {"id": "g"}
