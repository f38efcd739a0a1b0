"""Sums of invoice lines. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.billing.calculator import Line


def total_micros(lines: Iterable[Line]) -> int:
    return sum(line.amount_micros for line in lines)


def by_group(lines: Iterable[Line | Row[Any]]) -> dict[UUID, dict[str, int]]:
    """Amounts by group and kind, of lines or of their rows. The organization's own lines are of no group."""
    found: dict[UUID, dict[str, int]] = {}
    for line in lines:
        if line.group_id is None:
            continue
        kinds = found.setdefault(line.group_id, {})
        kinds[line.kind] = kinds.get(line.kind, 0) + line.amount_micros
    return found


def by_owner(lines: Iterable[Line], project_of: Mapping[UUID, UUID]) -> dict[UUID | None, int]:
    """Amounts of each project, and of all: None."""
    found: dict[UUID | None, int] = {}
    for line in lines:
        project_id = project_of_line(line, project_of)
        for owner in (None,) if project_id is None else (None, project_id):
            found[owner] = found.get(owner, 0) + line.amount_micros
    return found


def project_of_line(line: Line, project_of: Mapping[UUID, UUID]) -> UUID | None:
    """None: the line is the organization's own."""
    return line.project_id if line.group_id is None else project_of[line.group_id]


def by_project(lines: Iterable[Line | Row[Any]]) -> dict[UUID, int]:
    """Amounts of projects' own lines: their guarantees."""
    found: dict[UUID, int] = {}
    for line in lines:
        if line.project_id is not None:
            found[line.project_id] = found.get(line.project_id, 0) + line.amount_micros
    return found


def by_kind(lines: Iterable[Line | Row[Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in lines:
        found[line.kind] = found.get(line.kind, 0) + line.amount_micros
    return found
