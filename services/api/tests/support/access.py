"""The one table of who may call which operation, and one of every resource that addresses name."""

import uuid
from dataclasses import dataclass
from typing import Any

import psycopg

from quorate_api import app as application
from quorate_api.access.permissions import Allowed, Permission
from quorate_api.openapi import document
from support.customer import PASSWORD, SLA, Customer

P = Permission
GROUP = "orders"

PATHS: dict[str, dict[str, Any]] = document(application.bare())["paths"]
# Method, address, operation.
OPERATIONS: list[tuple[str, str, str]] = [
    (method.upper(), path, operation["operationId"])
    for path, methods in PATHS.items()
    for method, operation in methods.items()
]
METHODS = {operation: method for method, _, operation in OPERATIONS}
TAKE_BODIES = {
    operation["operationId"]
    for methods in PATHS.values()
    for operation in methods.values()
    if "requestBody" in operation
}
STAFF = ("/v1/operator/", "/v1/prober/")  # the fleet belongs to no organization: test_operator
PUBLIC = {
    "sign_up", "log_in", "log_in_with_passkey", "ask_for_passkey", "begin_first_passkey",
    "list_identity_providers", "begin_provider_login", "log_in_with_provider", "sign_up_with_provider",
    "request_password_reset", "reset_password", "look_at_invitation", "accept_invitation_as_new",
    "get_health", "get_readiness", "receive_stripe_event", "get_status", "get_status_feed", "get_incident",
}  # fmt: skip
PRIVATE = [each for each in OPERATIONS if each[2] not in PUBLIC and not each[1].startswith(STAFF)]
# These end what others need, so they come last, in this order.
LAST = (
    "delete_webhook", "delete_checkpoint", "delete_guarantee", "delete_budget", "revoke_key", "withdraw_invitation",
    "remove_member", "delete_group", "delete_project", "remove_totp", "remove_passkey", "remove_identity",
    "end_session", "change_password", "end_other_sessions", "switch_organization", "log_out",
)  # fmt: skip
ORDERED = sorted(PRIVATE, key=lambda each: LAST.index(each[2]) if each[2] in LAST else -1)


@dataclass(frozen=True)
class Need:
    """The need of an operation. `person`: a session. `whole`: no key of one project. `somewhere`: on some groups."""

    permission: Permission | None = None
    person: bool = False
    whole: bool = False
    somewhere: bool = False


_OF_WEBHOOKS = (
    "list_webhooks", "create_webhook", "get_webhook", "change_webhook", "delete_webhook", "rotate_webhook_secret",
    "test_webhook", "list_webhook_deliveries", "resend_webhook_delivery", "replay_webhook",
)  # fmt: skip


_OF_OWNERS = ("export_organization", "close_organization", "reopen_organization")


def _needs() -> dict[str, Need]:
    nothing = ("get_me", "list_projects", "get_project", "list_groups", "get_organization")
    of_person = (
        "log_out", "switch_organization", "send_verification", "verify_email", "change_password", "list_sessions",
        "end_other_sessions", "end_session", "confirm_person", "get_second_factor", "begin_totp", "remove_totp",
        "confirm_totp", "renew_recovery_codes", "accept_invitation", "list_passkeys", "begin_passkey", "add_passkey",
        "remove_passkey", "list_identities", "begin_identity", "add_identity", "remove_identity",
    )  # fmt: skip
    by_permission = {
        P.TEAM: ("list_members", "list_invitations", "list_keys"),
        P.ADMINISTER: (
            "create_project", "change_project_settings", "delete_project", "create_key",
            "list_organization_keys", "rotate_key", "revoke_key",
            "list_audit_events", "export_audit_log", "list_events",
        ),
        P.MANAGE: (
            "put_guarantee", "delete_guarantee", "quote_guarantee", "create_group", "resize_group",
            "change_group_settings", "delete_group", "reset_group",
        ),
        P.READ: (
            "list_entries", "get_entry", "list_checkpoints", "get_checkpoint", "save_checkpoint", "delete_checkpoint",
        ),
        P.VIEW: (
            "get_guarantee", "get_group", "get_partitions", "get_group_costs", "get_placement", "list_group_events",
            "glance_at_project", "get_usage", "get_metrics", "get_sla_report", "list_bad_minutes", "stream_group",
        ),
        P.BILLING: (
            "list_invoices", "get_current_invoice", "get_current_invoice_document", "get_current_invoice_lines",
            "get_invoice", "get_invoice_document", "get_invoice_lines", "list_payments", "check_out", "get_spend",
            "get_spend_days", "get_spend_metrics", "list_budgets", "get_budget", "delete_budget", "list_budget_alerts",
            "list_commitments",
        ),
    }  # fmt: skip
    found = {name: Need() for name in nothing} | {name: Need(person=True) for name in of_person}
    for permission, names in by_permission.items():
        found |= {name: Need(permission) for name in names}
    return found | {
        "create_organization_key": Need(P.ADMINISTER, person=True),
        **{name: Need(P.OWN, person=True) for name in _OF_OWNERS},
        "change_role": Need(P.ADMINISTER, person=True),
        "remove_member": Need(P.ADMINISTER, person=True),
        "invite_member": Need(P.ADMINISTER, person=True),
        "withdraw_invitation": Need(P.ADMINISTER, person=True),
        "make_commitment": Need(P.BILLING, person=True),
        "put_budget": Need(P.BILLING, whole=True),
        "create_quote": Need(P.MANAGE, somewhere=True),
        "get_handle": Need(P.APPEND),  # or to read
        "get_quotas": Need(P.VIEW, whole=True),
        "request_quota": Need(P.ADMINISTER, person=True),
        "withdraw_quota_request": Need(P.ADMINISTER, person=True),
        **{name: Need(P.ADMINISTER, whole=True) for name in _OF_WEBHOOKS},
    }


NEEDS = _needs()


@dataclass(frozen=True)
class Who:
    """A kind of caller. `scopes` None: a person with that role, or an operator's view."""

    name: str
    allowed: Allowed
    scopes: tuple[str, ...] | None = None
    of_organization: bool = False
    is_view: bool = False

    def may(self, operation: str, path: str) -> bool:
        need = NEEDS[operation]
        if self.is_view and (need.person or METHODS[operation] != "GET"):
            return False
        if self.scopes is not None and (need.person or (need.whole and not self.of_organization)):
            return False
        if need.permission is None:
            return True
        if need.somewhere:
            return self.allowed.has_somewhere(need.permission)
        group = GROUP if "{group_id}" in path or operation == "create_group" else None
        if operation == "get_handle":
            return self.allowed.has(P.APPEND, group) or self.allowed.has(P.READ, group)
        return self.allowed.has(need.permission, group)

    def sees_group(self) -> bool:
        return self.allowed.has(P.VIEW, GROUP)


def _key(*scopes: str, of_organization: bool = False) -> Who:
    name = f"key {' '.join(scopes)}" if not of_organization else "key of the organization"
    return Who(name, Allowed.of_scopes(scopes), scopes, of_organization)


WHO = [
    *(Who(role, Allowed.of_role(role)) for role in ("owner", "admin", "developer", "billing", "viewer")),
    *(_key(scope) for scope in ("append", "read", "manage", "billing", f"append:{GROUP}", "manage:other-*")),
    _key("administer", "append", "manage", "read", of_organization=True),
    Who("view", Allowed(frozenset({P.VIEW, P.TEAM, P.BILLING})), is_view=True),
]

BODIES: dict[str, Any] = {
    "create_key": {"name": "k", "scopes": ["append"]},
    "create_organization_key": {"name": "k"},
    "create_project": {"name": "another"},
    "create_group": {"name": GROUP, **SLA},  # the name is taken
    "create_quote": SLA,
    "rotate_key": {},
    "reset_group": {"epoch": 1},
    "resize_group": {"rate_per_s": 1_000},
    "change_group_settings": {"name": GROUP},
    "change_project_settings": {"name": "renamed"},
    "put_guarantee": {"shared_tokens_per_s": 1},
    "quote_guarantee": {"shared_tokens_per_s": 1},
    "save_checkpoint": {"offsets": [{"partition": 0, "next_offset": 1}]},
    "put_budget": {"monthly_micros": 2},
    "make_commitment": {"monthly_micros": 1_000_000, "months": 1},
    "change_role": {"role": "viewer"},
    "invite_member": {"email": "new@example.com", "role": "viewer"},
    "verify_email": {"token": "x"},
    "accept_invitation": {"token": "x"},
    "change_password": {"password": PASSWORD, "new_password": PASSWORD},
    "confirm_person": {"password": PASSWORD},
    "confirm_totp": {"code": "000000"},
    "begin_passkey": {},
    "add_passkey": {"name": "k", "credential": {}},
    "begin_identity": {"provider": "acme", "purpose": "connect"},
    "add_identity": {"state": "x", "code": "x"},
    "request_quota": {"wanted": 10**9, "reason": "a load test"},
    "send_verification": {},
    "begin_totp": {},
    "renew_recovery_codes": {},
    "log_out": {},
    "close_organization": {"name": "not its name"},
    "create_webhook": {"url": "https://example.com/"},
    "change_webhook": {"url": "https://example.com/"},
    "rotate_webhook_secret": {},
    "test_webhook": {},
    "resend_webhook_delivery": {},
    "replay_webhook": {"since": "2026-01-01T00:00:00Z"},
}


def add_member(owner: psycopg.Connection, organization_id: str, role: str) -> uuid.UUID:
    """A person who has never logged in."""
    user_id = uuid.uuid4()
    owner.execute(
        "INSERT INTO users (id, email, password_hash, created_at, email_verified_at)"
        " VALUES (%s, %s, 'x', now(), now())",
        (user_id, f"{user_id}@example.com"),
    )
    owner.execute("INSERT INTO memberships VALUES (%s, %s, %s, now())", (organization_id, user_id, role))
    return user_id


async def things_of(customer: Customer, owner: psycopg.Connection) -> dict[str, str]:
    """One of every addressable resource, by its name in paths."""
    group = await customer.create_group(GROUP)
    key = await customer.create_key(scopes=["append"])
    ids = {name: uuid.uuid4() for name in ("invoice_id", "invitation_id", "session_id", "passkey_id", "identity_id")}
    ids["user_id"] = add_member(owner, customer.organization_id, "viewer")
    organization_id = customer.organization_id
    owner.execute(
        "INSERT INTO invoices VALUES (%s, %s, 'invoice', 1, 'INV-2026-000001', '2026-01-01Z', '2026-02-01Z', 'USD', 0,"
        " NULL, now(), '2026')",
        (ids["invoice_id"], organization_id),
    )
    (me,) = owner.execute(
        "SELECT user_id FROM memberships WHERE organization_id = %s AND role = 'owner'", (organization_id,)
    ).fetchone() or (None,)
    owner.execute(
        "INSERT INTO invitations"
        " VALUES (%s, %s, 'guest@example.com', 'viewer', %s, %s, now(), now() + interval '1 day')",
        (ids["invitation_id"], organization_id, ids["invitation_id"].bytes, me),
    )
    owner.execute(
        "INSERT INTO sessions (id, organization_id, user_id, token_hmac, created_at, expires_at, authenticated_at,"
        " last_seen_at, address, user_agent)"
        " VALUES (%s, %s, %s, %s, now(), now() + interval '1 day', now(), now(), '', '')",
        (ids["session_id"], organization_id, me, ids["session_id"].bytes),
    )
    owner.execute(
        "INSERT INTO passkeys (id, user_id, name, credential_id, public_key, sign_count, created_at)"
        " VALUES (%s, %s, 'laptop', %s, %s, 0, now())",
        (ids["passkey_id"], me, ids["passkey_id"].bytes, b"x"),
    )
    owner.execute(
        "INSERT INTO identities (id, user_id, provider, issuer, subject, email, created_at)"
        " VALUES (%s, %s, 'acme', 'https://login.example.com', %s, 'a@example.com', now())",
        (ids["identity_id"], me, str(ids["identity_id"])),
    )
    budget = await customer.request("PUT", "/v1/budgets", json={"monthly_micros": 1, "project_id": customer.project_id})
    webhook = (await customer.post("/v1/webhooks", {"url": "https://example.com/"})).json()
    delivery = (await customer.post(f"/v1/webhooks/{webhook['id']}/test", {})).json()
    return {name: str(value) for name, value in ids.items()} | {
        "organization_id": customer.organization_id,
        "webhook_id": webhook["id"],
        "delivery_id": delivery["id"],
        "project_id": customer.project_id,
        "group_id": group["id"],
        "key_id": key["id"],
        "budget_id": budget.json()["id"],
        "consumer": "billing",
        "offset": "0",
        "quota": "projects",
    }
