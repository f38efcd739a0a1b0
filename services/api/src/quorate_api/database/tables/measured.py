"""Use, SLA minutes, and the public status."""

from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from quorate_api.database.tables.columns import count, json, metadata, tally, text, time, uuid

usage_windows = Table(
    "usage_windows",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("server_id", primary_key=True),
    text("incarnation", primary_key=True),
    count("epoch", primary_key=True),
    count("window_start_s", primary_key=True),
    text("role"),
    count("log_epoch"),
    count("committed_entries"),
    count("committed_bytes"),
    count("first_committed_entries"),
    count("first_committed_bytes"),
    count("offered_entries"),
    count("throttled_entries"),
    count("throttled_within_sla_entries"),
    count("within_sla_entries"),
    count("refused_entries"),
    count("read_entries"),
    count("read_bytes"),
    count("active_ms"),
    count("paused_ms"),
    count("from_ms"),
    count("to_ms"),
    count("stored_bytes"),
    count("owed_read_entries"),
    count("late_read_entries"),
    count("latency_count"),
    json("latency_us"),
    json("judged_latency_us", nullable=True),
)
packed_hours = Table(
    "packed_hours",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("hour_s", primary_key=True),
    count("first_active_s", nullable=True),
    count("last_active_s", nullable=True),
    Column("windows", LargeBinary, nullable=False),
)
usage_log_days = Table(
    "usage_log_days",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("log_epoch", primary_key=True),
    count("day_s", primary_key=True),
    count("committed_entries"),
    count("committed_bytes"),
)
usage_hours = Table(
    "usage_hours",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("hour_s", primary_key=True),
    count("read_entries"),
    count("stored_byte_minutes"),
    Column("packed", Boolean, nullable=False),
    count("read_bytes"),
)
usage_days = Table(
    "usage_days",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("day_s", primary_key=True),
    count("read_entries"),
    count("stored_byte_minutes"),
    count("read_bytes"),
)
settled_times = Table("settled_times", metadata, count("until_s", primary_key=True))
settled_totals = Table(
    "settled_totals",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("until_s", primary_key=True),
    count("read_entries"),
    count("stored_byte_minutes"),
    count("read_bytes"),
)
settled_logs = Table(
    "settled_logs",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("log_epoch", primary_key=True),
    count("until_s", primary_key=True),
    count("committed_entries"),
    count("committed_bytes"),
)
usage_dirty = Table(
    "usage_dirty",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("hour_s", primary_key=True),
)
sla_hours = Table(
    "sla_hours",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("hour_s", primary_key=True),
    *tally(),
)
sla_days = Table(
    "sla_days",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("day_s", primary_key=True),
    *tally(),
)
sla_bad_minutes = Table(
    "sla_bad_minutes",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("start_s", primary_key=True),
    count("elapsed_ms"),
    count("active_ms"),
    Column("measured", Boolean, nullable=False),
    count("throttled_within_sla_entries"),
    count("within_sla_entries"),
    count("p99_us", nullable=True),
    count("target_us"),
    count("unreachable_ms"),
    count("late_read_entries"),
    count("owed_read_entries"),
)
prober_minutes = Table(
    "prober_minutes",
    metadata,
    count("minute_s", primary_key=True),
    text("prober", primary_key=True),
    Column("watched", ARRAY(BigInteger), nullable=False),
    Column("failed", JSONB, nullable=False),
    Column("late", Boolean, nullable=False),
    time("received_at"),
)
sla_region_hours = Table(
    "sla_region_hours",
    metadata,
    text("region", primary_key=True),
    count("hour_s", primary_key=True),
    count("minutes"),
    count("available_minutes"),
)
status_hours = Table(
    "status_hours",
    metadata,
    text("region", primary_key=True),
    text("component", primary_key=True),
    count("hour_s", primary_key=True),
    count("minutes"),
    count("good_minutes"),
    count("last_minute_s"),
)
status_regions = Table(
    "status_regions",
    metadata,
    text("region", primary_key=True),
    time("sampled_at"),
    count("groups"),
    count("accepting"),
    Column("admits", Boolean, nullable=False),
    Column("api_reached", Boolean, nullable=False),
    time("usage_until", nullable=True),
)
status_incidents = Table(
    "status_incidents",
    metadata,
    uuid(primary_key=True),
    text("title"),
    Column("regions", ARRAY(Text), nullable=False),
    Column("components", ARRAY(Text), nullable=False),
    time("opened_at"),
)
status_updates = Table(
    "status_updates",
    metadata,
    uuid(primary_key=True),
    uuid("incident_id"),
    time("at"),
    text("phase"),
    text("impact"),
    text("message"),
)
rejected_usage = Table(
    "rejected_usage",
    metadata,
    text("entry_id", primary_key=True),
    Column("position", Integer, nullable=False, primary_key=True),
    time("rejected_at"),
    text("reason"),
    text("data"),
)
