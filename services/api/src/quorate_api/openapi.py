"""The OpenAPI document: FastAPI's, with one problem response for every call and with the ways to authenticate."""

import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from quorate_api.errors import catalogue
from quorate_api.errors.problem import ProblemBody
from quorate_api.events import catalogue as events
from quorate_api.http.idempotency import HEADER

_PUBLIC = {
    "sign_up",
    "log_in",
    "log_in_with_passkey",
    "ask_for_passkey",
    "list_identity_providers",
    "begin_provider_login",
    "log_in_with_provider",
    "sign_up_with_provider",
    "begin_first_passkey",
    "request_password_reset",
    "reset_password",
    "look_at_invitation",
    "accept_invitation_as_new",
    "get_health",
    "get_readiness",
    "get_status",
    "get_status_feed",
    "get_incident",
    "receive_stripe_event",
}
_PROBLEM = {
    "description": "A problem (RFC 9457), identified by `code`. See `sdk/contract/problems.json`.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_IDEMPOTENCY = {
    "name": HEADER.title(),
    "in": "header",
    "required": False,
    "description": "A random string for this request. Repeating it with the same body only repeats the answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
}


def operation_id(route: APIRoute) -> str:
    return route.name


def document(app: FastAPI) -> dict[str, Any]:
    """The document. It is built once per app, then kept."""
    if app.openapi_schema:
        return app.openapi_schema
    schema = get_openapi(
        title="Quorate",
        version="1.0.0",
        summary="Consensus as a cloud service, with an SLA.",
        description="Ordered, durable logs with an SLA: see docs/internals/api.md.",
        routes=app.routes,
    )
    components = schema.setdefault("components", {})
    problem = ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
    components["schemas"].update(problem.pop("$defs"))
    components["schemas"]["Problem"] = problem
    components["schemas"] |= events.schemas()
    schema["webhooks"] = events.as_openapi()
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["securitySchemes"] = {
        "api_key": {"type": "http", "scheme": "bearer", "description": "An API key, `qk_…`."},
        "operator": {"type": "http", "scheme": "bearer", "description": "An operator's token, `qo_…`."},
        "prober": {"type": "http", "scheme": "bearer", "description": "A prober's token, `qp_…`."},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": "quorate_session",
            "description": "Set by signing up and logging in (`__Host-quorate_session` over https). "
            "Changes also need the header `X-CSRF-Token`.",
        },
    }
    for path in schema["paths"].values():
        for method, operation in path.items():
            _finish(method, operation)
    app.openapi_schema = schema
    return schema


def _finish(method: str, operation: dict[str, Any]) -> None:
    operation["responses"].pop("422", None)
    operation["responses"]["4XX"] = _PROBLEM
    operation["responses"]["5XX"] = _PROBLEM
    if operation["operationId"] in _PUBLIC:
        operation["security"] = []
    elif {"operator", "prober"} & set(operation["tags"]):
        operation["security"] = [{tag: []} for tag in ("operator", "prober") if tag in operation["tags"]]
    else:
        operation["security"] = [{"api_key": []}, {"session": []}]
    if method == "post":
        operation.setdefault("parameters", []).append(_IDEMPOTENCY)


def as_text(app: FastAPI) -> str:
    return json.dumps(document(app), indent=1, ensure_ascii=False, sort_keys=False) + "\n"


def generated_files(app: FastAPI, repository: Path) -> dict[Path, str]:
    """Every checked-in file that is generated from this package."""
    contract = repository / "sdk" / "contract"
    pages = repository / "docs" / "operating" / "errors"
    return {
        contract / "openapi.json": as_text(app),
        repository / "docs" / "reference" / "events.md": events.as_page(),
        contract / "problems.json": json.dumps(catalogue.as_contract(), indent=1, ensure_ascii=False) + "\n",
    } | {pages / f"{code.value}.md": catalogue.as_page(code) for code in catalogue.Code}
