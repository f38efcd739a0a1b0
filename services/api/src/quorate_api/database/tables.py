"""The tables as SQLAlchemy sees them. `migrations/` is their source; a test proves that both agree.

A table with a column `organization_id` is owned. Query it through `database.scope` only.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Identity,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

metadata = MetaData()


def _id(name: str = "id", *, primary_key: bool = False, nullable: bool = False) -> Column[Any]:
    return Column(name, UUID(as_uuid=True), nullable=nullable, primary_key=primary_key)


def _time(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


def _count(name: str, *, primary_key: bool = False, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable, primary_key=primary_key)


def _text(name: str, *, primary_key: bool = False, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable, primary_key=primary_key)


def _json(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, JSONB(none_as_null=True), nullable=nullable)


def _percents(name: str) -> Column[list[int]]:
    return Column(name, ARRAY(BigInteger), nullable=False)


def _tally() -> list[Column[Any]]:
    """Sums of judged minutes."""
    counts = ("minutes", "elapsed_ms", "active_ms", "available_minutes", "unthrottled_minutes", "timely_minutes")
    return [*(_count(name) for name in counts), _json("latency_us")]


organizations = Table(
    "organizations",
    metadata,
    _id("organization_id", primary_key=True),
    _text("name"),
    _time("created_at"),
    _time("closed_until", nullable=True),
    _time("suspended_at", nullable=True),
    _text("suspension_reason", nullable=True),
    _time("closing_at", nullable=True),
    _time("closes_at", nullable=True),
    _time("closed_at", nullable=True),
    _time("erased_at", nullable=True),
    _text("standing"),
)
users = Table(
    "users",
    metadata,
    _id(primary_key=True),
    _text("email"),
    _text("password_hash"),
    _time("created_at"),
    _time("email_verified_at", nullable=True),
)
memberships = Table(
    "memberships",
    metadata,
    _id("organization_id", primary_key=True),
    _id("user_id", primary_key=True),
    _text("role"),
    _time("created_at"),
)
sessions = Table(
    "sessions",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _id("user_id"),
    Column("token_hmac", LargeBinary, nullable=False),
    _time("created_at"),
    _time("expires_at"),
    _time("tokens_until", nullable=True),
    _time("authenticated_at"),
    _time("last_seen_at"),
    _text("address"),
    _text("user_agent"),
)
mail_tokens = Table(
    "mail_tokens",
    metadata,
    Column("token_hmac", LargeBinary, nullable=False, primary_key=True),
    _id("user_id"),
    _text("purpose"),
    _time("created_at"),
    _time("expires_at"),
)
mails = Table(
    "mails",
    metadata,
    _id(primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    _time("created_at"),
    _count("attempts"),
    _time("next_at"),
)
totps = Table(
    "totps",
    metadata,
    _id("user_id", primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    _time("created_at"),
    _time("confirmed_at", nullable=True),
    _count("last_step"),
)
recovery_codes = Table(
    "recovery_codes",
    metadata,
    _id("user_id", primary_key=True),
    Column("code_hmac", LargeBinary, nullable=False, primary_key=True),
)
passkeys = Table(
    "passkeys",
    metadata,
    _id(primary_key=True),
    _id("user_id"),
    _text("name"),
    Column("credential_id", LargeBinary, nullable=False),
    Column("public_key", LargeBinary, nullable=False),
    _count("sign_count"),
    _time("created_at"),
    _time("last_used_at", nullable=True),
)
answered_challenges = Table(
    "answered_challenges",
    metadata,
    Column("challenge", LargeBinary, nullable=False, primary_key=True),
    _time("expires_at"),
)
audit_events = Table(
    "audit_events",
    metadata,
    _id("organization_id", primary_key=True),
    _count("seq", primary_key=True),
    _time("at"),
    _text("event"),
    Column("hash", LargeBinary, nullable=False),
)
operator_events = Table(
    "operator_events",
    metadata,
    _count("seq", primary_key=True),
    _time("at"),
    _text("event"),
    Column("hash", LargeBinary, nullable=False),
)
events = Table(
    "events",
    metadata,
    Column("seq", BigInteger, Identity(always=True), nullable=False, primary_key=True),
    _id(),
    _id("organization_id"),
    _text("type"),
    _text("key"),
    _time("at"),
    _json("data"),
    _id("for_webhook_id", nullable=True),
    _time("dispatched_at", nullable=True),
)
webhooks = Table(
    "webhooks",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _text("url"),
    _text("description"),
    Column("event_types", ARRAY(Text), nullable=False),
    _text("status"),
    _time("failing_since", nullable=True),
    _count("row_version"),
    _time("created_at"),
    _time("updated_at"),
)
webhook_secrets = Table(
    "webhook_secrets",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _id("webhook_id"),
    Column("sealed", LargeBinary, nullable=False),
    _time("created_at"),
    _time("ends_at", nullable=True),
)
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _id("webhook_id"),
    _count("event_seq"),
    _text("status"),
    _count("attempts"),
    _time("next_at", nullable=True),
    _time("last_at", nullable=True),
    _count("last_http_status", nullable=True),
    _text("last_error", nullable=True),
    _count("last_duration_ms", nullable=True),
    _time("created_at"),
)
invitations = Table(
    "invitations",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _text("email"),
    _text("role"),
    Column("token_hmac", LargeBinary, nullable=False),
    _id("invited_by"),
    _time("created_at"),
    _time("expires_at"),
)
projects = Table(
    "projects",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _text("name"),
    _time("created_at"),
    _time("deleted_at", nullable=True),
)
api_keys = Table(
    "api_keys",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _id("project_id", nullable=True),
    _text("name"),
    Column("scopes", ARRAY(Text), nullable=False),
    _id("created_by"),
    _time("created_at"),
    _time("last_used_at", nullable=True),
    _time("revoked_at", nullable=True),
    _time("expires_at", nullable=True),
)
api_key_secrets = Table(
    "api_key_secrets",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _id("key_id"),
    Column("secret_hmac", LargeBinary, nullable=False),
    _text("prefix"),
    _time("created_at"),
    _time("ends_at", nullable=True),
    _time("tokens_until", nullable=True),
)
revocations = Table(
    "revocations",
    metadata,
    _id("credential_id", primary_key=True),
    _id("organization_id"),
    _time("revoked_at"),
    _time("until"),
    _time("told_at", nullable=True),
)
groups = Table(
    "groups",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _id("project_id"),
    _text("name"),
    _json("sla"),
    _json("demand"),
    _json("price"),
    _count("hourly_micros"),
    _count("rate_per_s"),
    _time("created_at"),
    _time("delete_requested_at", nullable=True),
    _text("status"),
    _count("epoch"),
    _json("replicas"),
    _json("learners"),
    _time("observed_at", nullable=True),
    _time("active_at", nullable=True),
    _time("deleted_at", nullable=True),
    _count("row_version"),
    _json("resize", nullable=True),
    _count("sla_revision"),
    _count("availability_ppm"),
    Column("unseen", Boolean, nullable=False),
    _text("access"),
    _text("access_wanted"),
    _id("partition_of", nullable=True),
    _count("partition", nullable=True),
)
partitioned_groups = Table(
    "partitioned_groups",
    metadata,
    _id("group_id", primary_key=True),
    _id("organization_id"),
    _count("revision"),
    _json("sla", nullable=True),
    _json("price", nullable=True),
    _count("layout"),
    _count("in_use"),
    _json("changes"),
    _json("wanted", nullable=True),
    _time("requested_at"),
)
checkpoints = Table(
    "checkpoints",
    metadata,
    _id("group_id", primary_key=True),
    _text("consumer", primary_key=True),
    _count("partition", primary_key=True),
    _id("organization_id"),
    _count("next_offset"),
    _time("updated_at"),
)
former_slas = Table(
    "former_slas",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("revision", primary_key=True),
    _json("sla"),
    _count("hourly_micros"),
    _time("until"),
)
group_events = Table(
    "group_events",
    metadata,
    _count("seq", primary_key=True),
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _time("at"),
    _text("kind"),
    _count("epoch", nullable=True),
    _text("status", nullable=True),
    _count("server_id", nullable=True),
    _text("message"),
)
coordinator_cursor = Table(
    "coordinator_cursor",
    metadata,
    Column("only_row", Boolean, nullable=False, primary_key=True),
    _count("applied_seq"),
)
usage_windows = Table(
    "usage_windows",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("server_id", primary_key=True),
    _text("incarnation", primary_key=True),
    _count("epoch", primary_key=True),
    _count("window_start_s", primary_key=True),
    _text("role"),
    _count("log_epoch"),
    _count("committed_entries"),
    _count("committed_bytes"),
    _count("first_committed_entries"),
    _count("first_committed_bytes"),
    _count("offered_entries"),
    _count("throttled_entries"),
    _count("throttled_within_sla_entries"),
    _count("within_sla_entries"),
    _count("refused_entries"),
    _count("read_entries"),
    _count("read_bytes"),
    _count("active_ms"),
    _count("paused_ms"),
    _count("from_ms"),
    _count("to_ms"),
    _count("stored_bytes"),
    _count("owed_read_entries"),
    _count("late_read_entries"),
    _count("latency_count"),
    _json("latency_us"),
    _json("judged_latency_us", nullable=True),
)
packed_hours = Table(
    "packed_hours",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("hour_s", primary_key=True),
    _count("first_active_s", nullable=True),
    _count("last_active_s", nullable=True),
    Column("windows", LargeBinary, nullable=False),
)
usage_log_days = Table(
    "usage_log_days",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("log_epoch", primary_key=True),
    _count("day_s", primary_key=True),
    _count("committed_entries"),
    _count("committed_bytes"),
)
usage_hours = Table(
    "usage_hours",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("hour_s", primary_key=True),
    _count("read_entries"),
    _count("stored_byte_minutes"),
    Column("packed", Boolean, nullable=False),
    _count("read_bytes"),
)
usage_days = Table(
    "usage_days",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("day_s", primary_key=True),
    _count("read_entries"),
    _count("stored_byte_minutes"),
    _count("read_bytes"),
)
settled_times = Table("settled_times", metadata, _count("until_s", primary_key=True))
settled_totals = Table(
    "settled_totals",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("until_s", primary_key=True),
    _count("read_entries"),
    _count("stored_byte_minutes"),
    _count("read_bytes"),
)
settled_logs = Table(
    "settled_logs",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("log_epoch", primary_key=True),
    _count("until_s", primary_key=True),
    _count("committed_entries"),
    _count("committed_bytes"),
)
usage_dirty = Table(
    "usage_dirty",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("hour_s", primary_key=True),
)
sla_hours = Table(
    "sla_hours",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("hour_s", primary_key=True),
    *_tally(),
)
sla_days = Table(
    "sla_days",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("day_s", primary_key=True),
    *_tally(),
)
sla_bad_minutes = Table(
    "sla_bad_minutes",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _count("start_s", primary_key=True),
    _count("elapsed_ms"),
    _count("active_ms"),
    Column("measured", Boolean, nullable=False),
    _count("throttled_within_sla_entries"),
    _count("within_sla_entries"),
    _count("p99_us", nullable=True),
    _count("target_us"),
    _count("unreachable_ms"),
    _count("late_read_entries"),
    _count("owed_read_entries"),
)
prober_minutes = Table(
    "prober_minutes",
    metadata,
    _count("minute_s", primary_key=True),
    _text("prober", primary_key=True),
    Column("watched", ARRAY(BigInteger), nullable=False),
    Column("failed", JSONB, nullable=False),
    Column("late", Boolean, nullable=False),
    _time("received_at"),
)
sla_region_hours = Table(
    "sla_region_hours",
    metadata,
    _text("region", primary_key=True),
    _count("hour_s", primary_key=True),
    _count("minutes"),
    _count("available_minutes"),
)
status_hours = Table(
    "status_hours",
    metadata,
    _text("region", primary_key=True),
    _text("component", primary_key=True),
    _count("hour_s", primary_key=True),
    _count("minutes"),
    _count("good_minutes"),
    _count("last_minute_s"),
)
status_regions = Table(
    "status_regions",
    metadata,
    _text("region", primary_key=True),
    _time("sampled_at"),
    _count("groups"),
    _count("accepting"),
    Column("admits", Boolean, nullable=False),
    Column("api_reached", Boolean, nullable=False),
    _time("usage_until", nullable=True),
)
status_incidents = Table(
    "status_incidents",
    metadata,
    _id(primary_key=True),
    _text("title"),
    Column("regions", ARRAY(Text), nullable=False),
    Column("components", ARRAY(Text), nullable=False),
    _time("opened_at"),
)
status_updates = Table(
    "status_updates",
    metadata,
    _id(primary_key=True),
    _id("incident_id"),
    _time("at"),
    _text("phase"),
    _text("impact"),
    _text("message"),
)
rejected_usage = Table(
    "rejected_usage",
    metadata,
    _text("entry_id", primary_key=True),
    Column("position", Integer, nullable=False, primary_key=True),
    _time("rejected_at"),
    _text("reason"),
    _text("data"),
)
idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    _id(primary_key=True),
    _text("principal"),
    Column("key_hmac", LargeBinary, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    _time("locked_until"),
    Column("answer", LargeBinary, nullable=True),
    _time("created_at"),
)
quota_overrides = Table(
    "quota_overrides",
    metadata,
    _id("organization_id", primary_key=True),
    _text("code", primary_key=True),
    _count("limit_value"),
)
document_counters = Table(
    "document_counters",
    metadata,
    _text("series", primary_key=True),
    _text("kind", primary_key=True),
    _count("last_sequence"),
)
invoices = Table(
    "invoices",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _text("kind"),
    _count("sequence"),
    _text("number"),
    _time("period_start"),
    _time("period_end"),
    _text("currency"),
    _count("total_micros"),
    Column("corrects_invoice_id", UUID(as_uuid=True), nullable=True),
    _time("issued_at"),
    _text("series"),
    _count("tax_micros"),
    _json("seller", nullable=True),
    _json("customer", nullable=True),
    _time("due_at", nullable=True),
)
billed_quantities = Table(
    "billed_quantities",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    _text("kind", primary_key=True),
    _count("quantity"),
)
commitments = Table(
    "commitments",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _count("monthly_micros"),
    _count("months"),
    _count("discount_percent"),
    _time("starts_at"),
    _time("ends_at"),
    _time("created_at"),
    _id("created_by"),
)
guarantees = Table(
    "guarantees",
    metadata,
    _id("project_id", primary_key=True),
    _count("revision", primary_key=True),
    _id("organization_id"),
    _json("terms", nullable=True),
    _count("hourly_micros"),
    _time("requested_at"),
    _time("since", nullable=True),
)
invoice_lines = Table(
    "invoice_lines",
    metadata,
    _id("organization_id"),
    _id("invoice_id", primary_key=True),
    Column("position", Integer, nullable=False, primary_key=True),
    _id("group_id", nullable=True),
    _text("group_name"),
    _text("kind"),
    _text("description"),
    _count("quantity"),
    _text("unit"),
    _count("price_quantity"),
    _count("unit_price_micros"),
    _count("amount_micros"),
    _id("correction_id", nullable=True),
    _id("project_id", nullable=True),
)
invoice_taxes = Table(
    "invoice_taxes",
    metadata,
    _id("organization_id"),
    _id("invoice_id", primary_key=True),
    Column("position", Integer, nullable=False, primary_key=True),
    _text("label"),
    _count("rate_ppm"),
    _count("base_micros"),
    _count("amount_micros"),
)
ledger_entries = Table(
    "ledger_entries",
    metadata,
    _id("organization_id"),
    _id("invoice_id", primary_key=True),
    _text("account", primary_key=True),
    _count("amount_micros"),
    _time("created_at"),
)
payment_entries = Table(
    "payment_entries",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _id("invoice_id"),
    _text("kind"),
    _text("provider"),
    _text("reference"),
    _count("amount_micros"),
    _text("debit_account"),
    _text("credit_account"),
    _id("reverses_id", nullable=True),
    _text("recorded_by"),
    _time("at"),
)
payment_events = Table(
    "payment_events",
    metadata,
    _text("provider", primary_key=True),
    _text("event_id", primary_key=True),
    _id("organization_id"),
    _id("invoice_id"),
    _text("type"),
    _time("at"),
)
payment_checkouts = Table(
    "payment_checkouts",
    metadata,
    _id("organization_id"),
    _id("invoice_id", primary_key=True),
    _count("attempt", primary_key=True),
    _count("amount_micros"),
    _text("session_id", nullable=True),
    _text("url", nullable=True),
    _time("created_at"),
    _time("expires_at"),
    Column("ended", Boolean, nullable=False),
)
payment_reminders = Table(
    "payment_reminders",
    metadata,
    _id(),
    _id("organization_id"),
    _id("invoice_id", primary_key=True),
    _text("stage", primary_key=True),
    _count("due_micros"),
    _time("due_at"),
    _time("at"),
)
budgets = Table(
    "budgets",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _id("project_id", nullable=True),
    _count("monthly_micros"),
    _percents("thresholds_percent"),
    _percents("forecast_thresholds_percent"),
    _text("action"),
    _count("row_version"),
    _time("created_at"),
    _time("updated_at"),
    _time("deleted_at", nullable=True),
)
budget_alerts = Table(
    "budget_alerts",
    metadata,
    _id(),
    _id("organization_id"),
    _id("budget_id", primary_key=True),
    _text("month", primary_key=True),
    _text("kind", primary_key=True),
    _count("threshold_percent", primary_key=True),
    _count("amount_micros"),
    _count("monthly_micros"),
    _time("at"),
)
budget_actions = Table(
    "budget_actions",
    metadata,
    _id(),
    _id("organization_id"),
    _id("budget_id", primary_key=True),
    _text("month", primary_key=True),
    _text("action", primary_key=True),
    _count("monthly_micros", primary_key=True),
    _count("amount_micros"),
    _time("at"),
)
corrections = Table(
    "corrections",
    metadata,
    _id(primary_key=True),
    _id("organization_id"),
    _id("group_id"),
    _text("kind"),
    _count("quantity", nullable=True),
    Column("day", Date, nullable=True),
    _count("start_s", nullable=True),
    _count("end_s", nullable=True),
    _text("reason"),
    _text("author"),
    _time("created_at"),
)
changed_months = Table(
    "changed_months",
    metadata,
    _id("organization_id"),
    _id("group_id", primary_key=True),
    Column("month_start", DateTime(timezone=True), nullable=False, primary_key=True),
)

OWNED = frozenset(table.name for table in metadata.tables.values() if "organization_id" in table.c)
