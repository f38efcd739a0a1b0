"""Projects, their groups, and what the coordinator tells of them."""

from sqlalchemy import Boolean, Column, Table

from quorate_api.database.tables.columns import count, json, metadata, text, time, uuid

projects = Table(
    "projects",
    metadata,
    uuid(primary_key=True),
    uuid("organization_id"),
    text("name"),
    time("created_at"),
    time("deleted_at", nullable=True),
)
groups = Table(
    "groups",
    metadata,
    uuid(primary_key=True),
    uuid("organization_id"),
    uuid("project_id"),
    text("name"),
    json("sla"),
    json("demand"),
    json("price"),
    count("hourly_micros"),
    count("rate_per_s"),
    time("created_at"),
    time("delete_requested_at", nullable=True),
    text("status"),
    count("epoch"),
    json("replicas"),
    json("learners"),
    time("observed_at", nullable=True),
    time("active_at", nullable=True),
    time("deleted_at", nullable=True),
    count("row_version"),
    json("resize", nullable=True),
    count("sla_revision"),
    count("availability_ppm"),
    Column("unseen", Boolean, nullable=False),
    text("access"),
    text("access_wanted"),
    uuid("partition_of", nullable=True),
    count("partition", nullable=True),
)
partitioned_groups = Table(
    "partitioned_groups",
    metadata,
    uuid("group_id", primary_key=True),
    uuid("organization_id"),
    count("revision"),
    json("sla", nullable=True),
    json("price", nullable=True),
    count("layout"),
    count("in_use"),
    json("changes"),
    json("wanted", nullable=True),
    time("requested_at"),
)
checkpoints = Table(
    "checkpoints",
    metadata,
    uuid("group_id", primary_key=True),
    text("consumer", primary_key=True),
    count("partition", primary_key=True),
    uuid("organization_id"),
    count("next_offset"),
    time("updated_at"),
)
former_slas = Table(
    "former_slas",
    metadata,
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    count("revision", primary_key=True),
    json("sla"),
    count("hourly_micros"),
    time("until"),
)
group_events = Table(
    "group_events",
    metadata,
    count("seq", primary_key=True),
    uuid("organization_id"),
    uuid("group_id", primary_key=True),
    time("at"),
    text("kind"),
    count("epoch", nullable=True),
    text("status", nullable=True),
    count("server_id", nullable=True),
    text("message"),
)
coordinator_cursor = Table(
    "coordinator_cursor",
    metadata,
    Column("only_row", Boolean, nullable=False, primary_key=True),
    count("applied_seq"),
)
guarantees = Table(
    "guarantees",
    metadata,
    uuid("project_id", primary_key=True),
    count("revision", primary_key=True),
    uuid("organization_id"),
    json("terms", nullable=True),
    count("hourly_micros"),
    time("requested_at"),
    time("since", nullable=True),
)
