"""The real command: its dependencies, its output, its exit codes."""

import json
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import httpx2
import psycopg
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from redis import Redis

from quorate_api.observability.metric_names import ALL
from support.command import Process, address_of
from support.coordinator import FakeCoordinator
from support.customer import PASSWORD, SLA
from support.replica import ReplicaLog, encoded


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_from_sign_up_to_invoice(environment: dict[str, str], redis_url: str, coordinator: FakeCoordinator) -> None:
    """Both processes, real sockets: the API bills the usage that the worker ingests. SIGTERM stops both."""
    with Redis.from_url(redis_url) as bus:
        bus.flushdb()
        with Process(environment, "api") as api, Process(environment, "worker") as worker:
            worker.line("worker ready")
            with httpx2.Client(base_url=address_of(api), trust_env=False) as client:
                body = {"email": "a@example.com", "password": PASSWORD, "organization": "o"}
                signed_up = client.post("/v1/signup", json=body).json()
                client.headers["X-CSRF-Token"] = signed_up["csrf_token"]
                path = f"/v1/projects/{signed_up['project']['id']}/groups"
                group = client.post(path, json={"name": "g", **SLA}).json()
                log = ReplicaLog(group["id"], int(time.time()) // 60 * 60 - 120).run(100, seed=1)
                for report in log.reports:
                    bus.xadd("quorate:usage", encoded(report))
                deadline = time.monotonic() + 15
                while True:
                    lines = client.get("/v1/invoices/current").json()["lines"]
                    billed = {line["kind"]: line["quantity"] for line in lines}
                    events = client.get(f"/v1/groups/{group['id']}/events").json()["items"]
                    if billed.get("appends") == log.committed and len(events) == 2:
                        break
                    assert time.monotonic() < deadline, (billed, events)
                    time.sleep(0.05)
            assert worker.stop() == 0
            assert api.stop() == 0
        logged = [json.loads(line) for line in api.err]
        assert all({"level", "message"} <= set(entry) for entry in logged)
        assert any(entry.get("path") == "/v1/signup" for entry in logged)
        assert PASSWORD not in "".join(api.err + worker.err)


def test_a_worker_killed_at_random_bills_exactly(environment: dict[str, str], redis_url: str) -> None:
    with Redis.from_url(redis_url) as bus:
        bus.flushdb()
        with Process(environment, "api") as api:
            with httpx2.Client(base_url=address_of(api), trust_env=False) as client:
                body = {"email": "a@example.com", "password": PASSWORD, "organization": "o"}
                signed_up = client.post("/v1/signup", json=body).json()
                client.headers["X-CSRF-Token"] = signed_up["csrf_token"]
                path = f"/v1/projects/{signed_up['project']['id']}/groups"
                group = client.post(path, json={"name": "g", **SLA}).json()
                log = ReplicaLog(group["id"], int(time.time()) // 60 * 60 - 3_600)
                for seed in range(3):
                    with Process(environment | {"QUORATE_WORKER_NAME": "w"}, "worker") as worker:
                        worker.line("worker ready")
                        before = len(log.reports)
                        log.run(300, seed=seed)
                        for report in log.reports[before:]:
                            bus.xadd("quorate:usage", encoded(report))
                        time.sleep(0.03 * seed)  # the end of the block kills it
                with Process(environment | {"QUORATE_WORKER_NAME": "w"}, "worker") as worker:
                    deadline = time.monotonic() + 20
                    while True:
                        lines = client.get("/v1/invoices/current").json()["lines"]
                        if {line["kind"]: line["quantity"] for line in lines}.get("appends") == log.committed:
                            break
                        assert time.monotonic() < deadline, lines
                        time.sleep(0.05)


@pytest.mark.parametrize("name", ["api", "worker"])
def test_without_postgresql(environment: dict[str, str], name: str) -> None:
    gone = environment | {"DATABASE_URL": f"postgresql://u:hush@127.0.0.1:{free_port()}/d"}
    with Process(gone, name) as process:
        assert process.wait() == 3
    text = "".join(process.err)
    assert "waiting (0 of 0 s): PostgreSQL (DATABASE_URL)" in text or "waiting (0 of 1 s)" in text, text
    assert "stopped waiting: PostgreSQL" in text
    assert "hush" not in text


@pytest.mark.parametrize("name", ["api", "worker"])
def test_without_the_coordinator(environment: dict[str, str], name: str) -> None:
    with Process(environment | {"QUORATE_COORDINATOR_URL": f"http://127.0.0.1:{free_port()}"}, name) as process:
        assert process.wait() == 3
    assert "Coordinator (QUORATE_COORDINATOR_URL)" in "".join(process.err)


def test_the_worker_without_redis(environment: dict[str, str]) -> None:
    with Process(environment | {"REDIS_URL": f"redis://127.0.0.1:{free_port()}"}, "worker") as process:
        assert process.wait() == 3
    assert "Redis (REDIS_URL)" in "".join(process.err)


def test_the_api_without_redis(environment: dict[str, str]) -> None:
    with Process(environment | {"REDIS_URL": f"redis://127.0.0.1:{free_port()}"}, "api") as process:
        ready = httpx2.get(address_of(process) + "/v1/ready", trust_env=False)
        assert ready.status_code == 200
        assert ready.json()["status"] == "degraded"
        assert process.stop() == 0


def test_what_is_missing_may_come_later(environment: dict[str, str], owner: psycopg.Connection) -> None:
    owner.execute("ALTER TABLE alembic_version RENAME TO hidden")
    with Process(environment | {"QUORATE_START_WAIT_S": "20"}, "api") as process:
        deadline = time.monotonic() + 15
        while not any("quorate-api migrate" in line for line in process.err):
            assert time.monotonic() < deadline, process.err
            time.sleep(0.05)
        owner.execute("ALTER TABLE hidden RENAME TO alembic_version")
        address_of(process)


def test_a_port_in_use(environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with Process(environment | {"QUORATE_LISTEN": listen}, "api") as process:
            assert process.wait() == 4
    assert f"cannot listen on {listen}: the port is in use." in "".join(process.err)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("DATABASE_URL", "", "DATABASE_URL"),
        ("DATABASE_URL", "mysql://x", "postgresql://"),
        ("REDIS_URL", "http://x", "redis://"),
        ("QUORATE_LISTEN", "nowhere", "host:port"),
        ("QUORATE_SECRET_FILE", "/nonexistent", "QUORATE_SECRET_FILE"),
        ("QUORATE_TOKEN_SIGNING_KEY_FILE", "{secret}", "PKCS#8"),
        ("QUORATE_SECRET_FILE", "{key}", "hexadecimal"),
        ("QUORATE_PORTAL_DIR", "/nonexistent", "QUORATE_PORTAL_DIR"),
    ],
)
def test_bad_configuration(environment: dict[str, str], variable: str, value: str, says: str) -> None:
    value = value.format(secret=environment["QUORATE_SECRET_FILE"], key=environment["QUORATE_TOKEN_SIGNING_KEY_FILE"])
    with Process(environment | {variable: value}, "api") as process:
        assert process.wait() == 2
    text = "".join(process.err)
    assert says in text
    assert "Traceback" not in text


def test_migrate(environment: dict[str, str]) -> None:
    with Process(environment, "migrate") as process:
        assert process.wait() == 0
    with Process(environment | {"DATABASE_URL": f"postgresql://127.0.0.1:{free_port()}/d"}, "migrate") as process:
        assert process.wait() == 3


def test_keys_init(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"]}
    folder = tmp_path / "secrets"
    for made in (5, 0):
        with Process(environment, "keys-init", "--dir", str(folder)) as process:
            assert process.wait() == 0
        assert len(process.out) == made, "what is there stays"
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("token-signing-key.pem", "api-secret", "operator-token", "prober-token"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    (key,) = json.loads((folder / "token-public-keys.json").read_text())["keys"]
    assert {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA"}.items() <= key.items()
    assert "d" not in key


def test_generated_files_are_up_to_date() -> None:
    with Process({"PATH": os.environ["PATH"]}, "openapi", "--check") as process:
        assert process.wait() == 0, process.err


def test_the_portal(environment: dict[str, str], tmp_path: Path) -> None:
    portal = tmp_path / "portal"
    (portal / "assets").mkdir(parents=True)
    (portal / "index.html").write_text("<title>Quorate</title>")
    (portal / "routes.txt").write_text("/\n/groups/$groupId\n/login\n")
    (portal / "assets" / "app-1a2b.js").write_text("1")
    (tmp_path / "outside.txt").write_text("secret")
    with Process(environment | {"QUORATE_PORTAL_DIR": str(portal)}, "api") as process:
        with httpx2.Client(base_url=address_of(process), trust_env=False) as client:
            for path in ("/", "/groups/123", "/groups/123/", "/login?next=%2F"):
                answer = client.get(path)
                assert (answer.status_code, answer.text) == (200, "<title>Quorate</title>"), path
                assert answer.headers["cache-control"] == "no-cache"
                assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
                assert "base-uri 'none'" in answer.headers["content-security-policy"]
            for path in ("/docs", "/groups", "/groups/1/2", "/loginx"):
                answer = client.get(path)
                assert (answer.status_code, answer.text) == (404, "<title>Quorate</title>"), path
            asset = client.get("/assets/app-1a2b.js")
            assert asset.headers["cache-control"].endswith("immutable")
            for path in ("/assets/gone.js", "/v1/nowhere", "/logo.png", "/..%2foutside.txt"):
                answer = client.get(path)
                assert answer.status_code == 404, path
                assert answer.headers["content-type"] == "application/problem+json"
            page = client.get("/errors/admission_refused")
            assert "The fleet cannot promise this SLA" in page.text
            assert "A newer fencing token" in client.get("/errors/fenced").text
            assert client.get("/errors/nonsense").status_code == 404


class _Collector(BaseHTTPRequestHandler):
    received: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_traces_and_metrics(environment: dict[str, str]) -> None:
    """With an OTLP endpoint, spans and metrics arrive there, and the handle continues the caller's trace."""
    collector = ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    thread = threading.Thread(target=collector.serve_forever)
    thread.start()
    endpoint = f"http://127.0.0.1:{collector.server_address[1]}"
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    try:
        with Process(environment | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, "api") as process:
            with httpx2.Client(base_url=address_of(process), trust_env=False) as client:
                body = {"email": "a@example.com", "password": PASSWORD, "organization": "o"}
                signed_up = client.post("/v1/signup", json=body).json()
                client.headers["X-CSRF-Token"] = signed_up["csrf_token"]
                path = f"/v1/projects/{signed_up['project']['id']}/groups"
                group = client.post(path, json={"name": "g", **SLA}).json()
                headers = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
                handle = client.get(f"/v1/groups/{group['id']}/handle", headers=headers).json()
            assert process.stop() == 0
        assert handle["traceparent"].split("-")[1] == trace_id
        received = {path for path, _ in _Collector.received}
        assert received == {"/v1/traces", "/v1/metrics"}
        assert _exported("api") >= {metric.name for metric in ALL if "api" in metric.processes}
        spans = b"".join(body for path, body in _Collector.received if path == "/v1/traces")
        assert bytes.fromhex(trace_id) in spans
        assert b"/v1/groups/{group_id}/handle" in spans
        assert _roots(), "the sign-up began a trace"
        assert all(name.startswith(("GET /", "POST /")) for name in _roots()), _roots()
        logged = [json.loads(line) for line in process.err]
        assert any(entry.get("trace_id") == trace_id for entry in logged)
    finally:
        collector.shutdown()
        thread.join(10)
        collector.server_close()


def _roots() -> set[str]:
    """Names of spans that begin a trace. Requests begin one; probes of dependencies do not."""
    requests = [
        ExportTraceServiceRequest.FromString(body) for path, body in _Collector.received if path == "/v1/traces"
    ]
    scopes = [scope for request in requests for resource in request.resource_spans for scope in resource.scope_spans]
    return {span.name for scope in scopes for span in scope.spans if not span.parent_span_id}


def _exported(process: str) -> set[str]:
    """Names of metrics that one kind of process sent to the collector."""
    names = set()
    for path, body in _Collector.received:
        if path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                said = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
                assert said["service.instance.id"], said
                if said["service.name"] == f"quorate-{process}":
                    names |= {metric.name for scope in resource.scope_metrics for metric in scope.metrics}
    return names


def test_the_worker_exports_what_it_should(environment: dict[str, str]) -> None:
    wanted = {metric.name for metric in ALL if "worker" in metric.processes}
    collector = ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    thread = threading.Thread(target=collector.serve_forever)
    thread.start()
    _Collector.received.clear()
    try:
        endpoint = f"http://127.0.0.1:{collector.server_address[1]}"
        with Process(environment | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, "worker") as worker:
            worker.line("worker ready")
            deadline = time.monotonic() + 30
            while not _exported("worker") >= wanted:
                assert time.monotonic() < deadline, wanted - _exported("worker")
                time.sleep(0.1)
            assert worker.stop() == 0
    finally:
        collector.shutdown()
        thread.join(10)
        collector.server_close()


def test_off_without_an_endpoint(environment: dict[str, str]) -> None:
    with Process(environment, "api") as process:
        with httpx2.Client(base_url=address_of(process), trust_env=False) as client:
            body = {"email": "a@example.com", "password": PASSWORD, "organization": "o"}
            signed_up = client.post("/v1/signup", json=body).json()
            client.headers["X-CSRF-Token"] = signed_up["csrf_token"]
            path = f"/v1/projects/{signed_up['project']['id']}/groups"
            group = client.post(path, json={"name": "g", **SLA}).json()
            assert group["handle"]["traceparent"] is None


@pytest.mark.parametrize(
    ("changed", "starts"),
    [
        ({"QUORATE_PUBLIC_URL": "http://quorate.example.com"}, False),
        ({"QUORATE_PUBLIC_URL": "", "QUORATE_LISTEN": "0.0.0.0:0"}, False),
        ({"QUORATE_PUBLIC_URL": "http://quorate.example.com", "QUORATE_ALLOW_HTTP": "true"}, True),
        ({"QUORATE_PUBLIC_URL": "https://quorate.example.com"}, True),
    ],
)
def test_cookies_go_over_https_alone(environment: dict[str, str], changed: dict[str, str], starts: bool) -> None:
    with Process(environment | changed, "migrate") as process:
        code = process.wait()
        assert (code == 0) == starts, process.err
        assert starts or "QUORATE_ALLOW_HTTP" in "".join(process.err)
