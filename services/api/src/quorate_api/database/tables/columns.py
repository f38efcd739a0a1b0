"""Kinds of columns, and the one `metadata` of all tables."""

from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, MetaData, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

metadata = MetaData()


def uuid(name: str = "id", *, primary_key: bool = False, nullable: bool = False) -> Column[Any]:
    return Column(name, UUID(as_uuid=True), nullable=nullable, primary_key=primary_key)


def time(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


def count(name: str, *, primary_key: bool = False, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable, primary_key=primary_key)


def text(name: str, *, primary_key: bool = False, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable, primary_key=primary_key)


def json(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, JSONB(none_as_null=True), nullable=nullable)


def percents(name: str) -> Column[list[int]]:
    return Column(name, ARRAY(BigInteger), nullable=False)


def tally() -> list[Column[Any]]:
    """Sums of judged minutes."""
    counts = ("minutes", "elapsed_ms", "active_ms", "available_minutes", "unthrottled_minutes", "timely_minutes")
    return [*(count(name) for name in counts), json("latency_us")]
