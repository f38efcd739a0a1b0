"""Organizations, people, and the credentials of both."""

from sqlalchemy import Column, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY

from quorate_api.database.tables.columns import count, metadata, text, time, uuid

organizations = Table(
    "organizations",
    metadata,
    uuid("organization_id", primary_key=True),
    text("name"),
    time("created_at"),
    time("closed_until", nullable=True),
    time("suspended_at", nullable=True),
    text("suspension_reason", nullable=True),
    time("closing_at", nullable=True),
    time("closes_at", nullable=True),
    time("closed_at", nullable=True),
    time("erased_at", nullable=True),
    text("standing"),
)
users = Table(
    "users",
    metadata,
    uuid(primary_key=True),
    text("email"),
    text("password_hash"),
    time("created_at"),
    time("email_verified_at", nullable=True),
)
memberships = Table(
    "memberships",
    metadata,
    uuid("organization_id", primary_key=True),
    uuid("user_id", primary_key=True),
    text("role"),
    time("created_at"),
)
sessions = Table(
    "sessions",
    metadata,
    uuid(primary_key=True),
    uuid("organization_id"),
    uuid("user_id"),
    Column("token_hmac", LargeBinary, nullable=False),
    time("created_at"),
    time("expires_at"),
    time("tokens_until", nullable=True),
    time("authenticated_at"),
    time("last_seen_at"),
    text("address"),
    text("user_agent"),
)
mail_tokens = Table(
    "mail_tokens",
    metadata,
    Column("token_hmac", LargeBinary, nullable=False, primary_key=True),
    uuid("user_id"),
    text("purpose"),
    time("created_at"),
    time("expires_at"),
)
mails = Table(
    "mails",
    metadata,
    uuid(primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    time("created_at"),
    count("attempts"),
    time("next_at"),
)
totps = Table(
    "totps",
    metadata,
    uuid("user_id", primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    time("created_at"),
    time("confirmed_at", nullable=True),
    count("last_step"),
)
recovery_codes = Table(
    "recovery_codes",
    metadata,
    uuid("user_id", primary_key=True),
    Column("code_hmac", LargeBinary, nullable=False, primary_key=True),
)
passkeys = Table(
    "passkeys",
    metadata,
    uuid(primary_key=True),
    uuid("user_id"),
    text("name"),
    Column("credential_id", LargeBinary, nullable=False),
    Column("public_key", LargeBinary, nullable=False),
    count("sign_count"),
    time("created_at"),
    time("last_used_at", nullable=True),
)
identities = Table(
    "identities",
    metadata,
    uuid(primary_key=True),
    uuid("user_id"),
    text("provider"),
    text("issuer"),
    text("subject"),
    text("email"),
    time("created_at"),
    time("last_used_at", nullable=True),
)
answered_challenges = Table(
    "answered_challenges",
    metadata,
    Column("challenge", LargeBinary, nullable=False, primary_key=True),
    time("expires_at"),
)
invitations = Table(
    "invitations",
    metadata,
    uuid(primary_key=True),
    uuid("organization_id"),
    text("email"),
    text("role"),
    Column("token_hmac", LargeBinary, nullable=False),
    uuid("invited_by"),
    time("created_at"),
    time("expires_at"),
)
api_keys = Table(
    "api_keys",
    metadata,
    uuid(primary_key=True),
    uuid("organization_id"),
    uuid("project_id", nullable=True),
    text("name"),
    Column("scopes", ARRAY(Text), nullable=False),
    uuid("created_by"),
    time("created_at"),
    time("last_used_at", nullable=True),
    time("revoked_at", nullable=True),
    time("expires_at", nullable=True),
)
api_key_secrets = Table(
    "api_key_secrets",
    metadata,
    uuid(primary_key=True),
    uuid("organization_id"),
    uuid("key_id"),
    Column("secret_hmac", LargeBinary, nullable=False),
    text("under", nullable=True),
    text("prefix"),
    time("created_at"),
    time("ends_at", nullable=True),
    time("tokens_until", nullable=True),
)
revocations = Table(
    "revocations",
    metadata,
    uuid("credential_id", primary_key=True),
    uuid("organization_id"),
    time("revoked_at"),
    time("until"),
    time("told_at", nullable=True),
)
idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    uuid(primary_key=True),
    text("principal"),
    Column("key_hmac", LargeBinary, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    time("locked_until"),
    Column("answer", LargeBinary, nullable=True),
    time("created_at"),
)
quota_overrides = Table(
    "quota_overrides",
    metadata,
    uuid("organization_id", primary_key=True),
    text("code", primary_key=True),
    count("limit_value"),
)
quota_requests = Table(
    "quota_requests",
    metadata,
    uuid("organization_id", primary_key=True),
    text("code", primary_key=True),
    count("wanted"),
    text("reason"),
    uuid("asked_by"),
    time("created_at"),
)
