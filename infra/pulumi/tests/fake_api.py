"""A strict stand-in for the API, over real HTTP. It checks bodies by the contract (sdk/contract/openapi.json) and keys,
stores Idempotency-Keys, and has faults on demand. Anything outside of the contract is a violation."""

from __future__ import annotations

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CONTRACT = json.loads((Path(__file__).parents[3] / "sdk/contract/openapi.json").read_text())
SCHEMAS = CONTRACT["components"]["schemas"]
KEYS = {"qk_manage": {"manage", "append", "read"}, "qk_other": {"manage"}, "qk_app": {"append", "read"}}
RATE_MAX = 10_000  # rate that the fleet can promise in all
TOKENS_MAX = 500_000  # shared tokens that it can
TERMS = SCHEMAS["GuaranteeTerms"]["properties"]
PROJECT = "01930f3c-5f4e-7cc3-98c4-dc0c0c073980"
DEFAULTS = {"region": "local", "retention_bytes": 256 << 20, "min_replicas": None, "retention_age_s": None}
DEFAULTS |= {"read_rate_per_s": 0}
DEFAULTS |= {"latency": "standard"}
NO_SLA = ("name", "partitions")
TYPES = {"integer": int, "string": str, "null": type(None)}


class FakeApi:
    def __init__(self) -> None:
        self.groups, self.answers, self.guarantees = {}, {}, {}
        self.calls, self.violations = [], []
        self.lose_answers = 0  # number of POSTs whose work is done before the connection breaks
        self.provisioning = 0  # number of reads before a new group is active
        self.deleting = 0  # number of reads before a deleted group is gone
        self.moving = 0  # number of reads before a resize begins
        self.handles = 0
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                with fake._lock:
                    fake._serve(self)

            do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def called(self, method: str, path_end: str = "") -> list[tuple[str, str, dict | None, str | None]]:
        return [call for call in self.calls if call[0] == method and call[1].endswith(path_end)]

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        size = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(size)) if size else None
        key = request.headers.get("Idempotency-Key")
        method, path = request.command, request.path
        self.calls.append((method, path, body, key))
        if (method == "POST") != (key is not None):
            self.violations.append(f"{method} {path} with Idempotency-Key {key!r}")
        status, answer = self._once(method, path, body, key, request.headers.get("Authorization", ""))
        if method == "POST" and status < 300 and self.lose_answers:
            self.lose_answers -= 1
            request.close_connection = True
            return
        data = b"" if answer is None else json.dumps(answer).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def _once(self, method, path, body, key, authorization):
        scopes = KEYS.get(authorization.removeprefix("Bearer "))
        if scopes is None:
            return problem(401, "credentials_invalid", "No such key.")
        known = self.answers.get((authorization, key)) if key else None
        if known is not None:
            if known[0] != (path, body):
                return problem(422, "idempotency_key_reused", "Another request.")
            return known[1]
        answer = self._route(method, path.removeprefix("/v1/").split("/"), body, scopes)
        if key and answer[0] < 300:
            self.answers[authorization, key] = ((path, body), json.loads(json.dumps(answer)))
        return answer

    def _route(self, method, parts, body, scopes):
        match (method, *parts):
            case ("POST", "quotes"):
                self._hold(body, "QuoteRequest")
                refusal = self._refusal(body, body.get("replaces_group_id"))
                return 200, {"admissible": refusal is None, "price": price(), "demand": {}, "refusal": refusal}
            case ("POST", "projects", project, "groups"):
                self._hold(body, "NewGroup")
                return self._make(project, body) if "manage" in scopes else problem(403, "permission_denied", "No.")
            case (_, "projects", project, "guarantee") if project != PROJECT:
                return problem(404, "not_found", "No such project.")
            case ("PUT", "projects", project, "guarantee"):
                return self._guarantee(project, body)
            case ("GET", "projects", project, "guarantee"):
                return 200, self._shown(project)
            case ("DELETE", "projects", project, "guarantee"):
                self.guarantees.pop(project, None)
                return 204, None
            case ("GET", "projects", project, "groups"):
                items = [group for group in self.groups.values() if group["project_id"] == project]
                return 200, {"items": items, "next_cursor": None}
            case (_, "groups", group, *_) if group not in self.groups:
                return problem(404, "not_found", "No such group.")
            case ("GET", "groups", group):
                return 200, self._look(group)
            case ("PATCH", "groups", group):
                self._hold(body, "Resize")
                return self._resize(group, body)
            case ("DELETE", "groups", group):
                del self.groups[group]
                return 204, None
            case ("GET", "groups", group, "handle"):
                if "read" not in scopes:
                    return problem(403, "permission_denied", "No.")
                self.handles += 1
                return 200, handle(group, self.handles)
        self.violations.append(f"the API has no {method} {'/'.join(parts)}")
        return problem(404, "not_found", "No such address.")

    def _hold(self, body, schema):
        """The body against the contract: names, types and bounds."""
        fields, required = SCHEMAS[schema]["properties"], SCHEMAS[schema].get("required", [])
        self.violations += [f"{schema} lacks {name}" for name in required if name not in body]
        for name, value in body.items():
            field = fields.get(name, {})
            choices = field.get("anyOf", [field])
            if not any(_fits(value, choice) for choice in choices):
                self.violations.append(f"{schema}.{name} = {value!r}")

    def _guarantee(self, project, terms):
        self.violations += [f"GuaranteeTerms.{name}" for name in terms if name not in TERMS]
        if terms["shared_tokens_per_s"] > TOKENS_MAX:
            detail = f"s1 has too little CPU free. {TOKENS_MAX} fit now."
            errors = [{"field": "shared_tokens_per_s", "message": detail}]
            return problem(409, "guarantee_refused", detail, errors=errors)
        self.guarantees[project] = terms
        return 200, self._shown(project)

    def _shown(self, project):
        terms = self.guarantees.get(project)
        none = {"shared_tokens_per_s": 0, "max_tokens_per_s": None, "policy": {"name": "drf", "groups": []}}
        price = {"hourly_micros": 0, "monthly_micros": 730 * (terms or none)["shared_tokens_per_s"], "currency": "USD"}
        since = "2026-11-20T12:00:00Z" if terms else None
        return {"project_id": project, **none, **(terms or {}), "since": since, "price": price, "groups": []}

    def _make(self, project, asked):
        if project != PROJECT:
            return problem(404, "not_found", "No such project.")
        if any(group["name"] == asked["name"] for group in self.groups.values()):
            return problem(409, "name_taken", "Another group has this name.")
        refusal = self._refusal(asked, None)
        if refusal:
            return problem(409, "admission_refused", "The fleet cannot promise it.", refusal=refusal)
        made = {
            "id": str(uuid.uuid4()),
            "project_id": project,
            "name": asked["name"],
            "sla": {**DEFAULTS, **{name: value for name, value in asked.items() if name not in NO_SLA}},
            "partitions": asked.get("partitions", 1),
            "status": "provisioning" if self.provisioning else "active",
            "epoch": 1,
            "price": price(),
            "created_at": "2026-11-20T12:00:00Z",
            "observed_at": None,
        }
        self.groups[made["id"]] = made
        return 201, {**made, "handle": None}

    def _look(self, group):
        found = self.groups[group]
        if found.get("resizing") is not None:
            self.moving -= 1
            if self.moving <= 0:
                found["sla"], found["epoch"] = found.pop("resizing")["sla"], found["epoch"] + 1
        if found["status"] == "provisioning":
            self.provisioning -= 1
            if self.provisioning <= 0:
                found["status"] = "active"
        elif found["status"] == "deleting" and self.deleting:
            self.deleting -= 1
            if self.deleting <= 0:
                del self.groups[group]
        return found

    def _resize(self, group, changes):
        found = self.groups[group]
        sla = {**found["sla"], **changes}
        refusal = self._refusal(sla, group)
        if refusal:
            return problem(409, "admission_refused", "The group's servers have no room.", refusal=refusal)
        found["partitions"] = sla.pop("partitions", found["partitions"])
        found["resizing"] = {"sla": sla}
        if not self.moving:
            found["sla"], found["epoch"] = found.pop("resizing")["sla"], found["epoch"] + 1
        return 200, found

    def _refusal(self, asked, without):
        if asked.get("region", "local") != "local":
            return {"reason": "unknown_region", "scarce_resource": "servers", "message": "No server is there."}
        others = sum(group["sla"]["rate_per_s"] for id_, group in self.groups.items() if id_ != without)
        if others + asked["rate_per_s"] <= RATE_MAX:
            return None
        return {
            "reason": "insufficient_capacity",
            "scarce_resource": "cpu",
            "message": "The head needs more cores than are free.",
            "largest_sla_that_fits": {**asked, "rate_per_s": RATE_MAX - others},
        }


def _fits(value, field):
    kind = TYPES.get(field.get("type"))
    if kind is None or not isinstance(value, kind) or isinstance(value, bool):
        return False
    if "enum" in field and value not in field["enum"]:
        return False
    return not isinstance(value, int) or field.get("minimum", value) <= value <= field.get("maximum", value)


def price():
    return {"hourly_micros": 100, "monthly_micros": 73_000, "currency": "EUR", "lines": [], "usage": []}


def problem(status, code, detail, **more):
    return status, {
        "type": f"https://example.test/{code}",
        "title": code,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": "req_1",
        "retryable": False,
        "errors": [],
        **more,
    }


def handle(group, number):
    return {
        "group_id": group,
        "name": "orders",
        "epoch": 3,
        "endpoints": [{"server_id": 1, "address": "127.0.0.1:7001", "role": "sole"}],
        "token": f"token-{number}",
        "token_expires_at": "2026-11-20T12:00:00Z",
        "sla": {"durability": "persistent", "replication_degree": 1, "request_size_bytes": 64, "rate_per_s": 10},
        "limits": {"max_entry_bytes": 1000, "max_batch_bytes": 2000, "max_batch_entries": 3, "window_batches": 4},
    }
