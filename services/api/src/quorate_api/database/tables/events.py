"""Audit logs, events, and webhooks."""

from sqlalchemy import BigInteger, Column, Identity, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY

from quorate_api.database.tables.columns import count, json, metadata, text, time, uuid

audit_events = Table(
    "audit_events",
    metadata,
    uuid("organization_id", primary_key=True),
    count("seq", primary_key=True),
    time("at"),
    text("event"),
    Column("hash", LargeBinary, nullable=False),
)
uncopied_events = Table(
    "uncopied_events",
    metadata,
    text("log", primary_key=True),
    count("seq", primary_key=True),
)
operator_events = Table(
    "operator_events",
    metadata,
    count("seq", primary_key=True),
    time("at"),
    text("event"),
    Column("hash", LargeBinary, nullable=False),
)
events = Table(
    "events",
    metadata,
    Column("seq", BigInteger, Identity(always=True), nullable=False, primary_key=True),
    uuid(),
    uuid("organization_id"),
    text("type"),
    text("key"),
    time("at"),
    json("data"),
    uuid("for_webhook_id", nullable=True),
    time("dispatched_at", nullable=True),
)
webhooks = Table(
    "webhooks",
    metadata,
    uuid(primary_key=True),
    uuid("organization_id"),
    text("url"),
    text("description"),
    Column("event_types", ARRAY(Text), nullable=False),
    text("status"),
    time("failing_since", nullable=True),
    count("row_version"),
    time("created_at"),
    time("updated_at"),
)
webhook_secrets = Table(
    "webhook_secrets",
    metadata,
    uuid(primary_key=True),
    uuid("organization_id"),
    uuid("webhook_id"),
    Column("sealed", LargeBinary, nullable=False),
    time("created_at"),
    time("ends_at", nullable=True),
)
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    uuid(primary_key=True),
    uuid("organization_id"),
    uuid("webhook_id"),
    count("event_seq"),
    text("status"),
    count("attempts"),
    time("next_at", nullable=True),
    time("last_at", nullable=True),
    count("last_http_status", nullable=True),
    text("last_error", nullable=True),
    count("last_duration_ms", nullable=True),
    time("created_at"),
)
