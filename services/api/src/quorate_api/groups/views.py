"""Rows of groups as the coordinator would show them."""

from typing import Any

from sqlalchemy import Row

from quorate_api.coordinator.schemas import GroupView, ObservedSla, Replica


def stored_view(row: Row[Any]) -> GroupView:
    """The coordinator's view as it was stored."""
    return GroupView(
        group_id=row.id,
        sla=ObservedSla(**row.sla),
        status=row.status,
        access=row.access,
        epoch=row.epoch,
        replicas=[Replica(**replica) for replica in row.replicas],
        learners=[Replica(**replica) for replica in row.learners],
    )
