"""The handle: the addresses of a group's replicas, and a token that they accept (sdk/contract/handle.md)."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from opentelemetry import propagate
from sqlalchemy import Row

from quorate_api import limits
from quorate_api.access.permissions import Permission
from quorate_api.coordinator.client import CoordinatorUnavailable
from quorate_api.coordinator.schemas import GroupView, PartitionsView
from quorate_api.credentials import service as credentials
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.groups.schemas import (
    Endpoint,
    Handle,
    HandleGuarantee,
    HandleLayoutChange,
    HandleLimits,
    HandlePartition,
    HandlePartitions,
    HandleSla,
    HandleTls,
)
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.security.tokens import Token

KEY_HASH = 1  # sdk/contract/partitions.md


async def issue(
    work: Work,
    services: Services,
    principal: Principal,
    row: Row[Any],
    view: GroupView,
    partitions: PartitionsView | None = None,
    *,
    only: Permission | None = None,
) -> Handle:
    """Issue a handle with a token for `principal`. `partitions`: of a group that has some. `only`: the token has
    no other permission.

    Raises `permission_denied` for a caller without permission to append or read, and `group_lost`. Raises
    `group_not_ready` for a group without servers. Raises `coordinator_unavailable` until this process has fetched the
    fleet's certificate authority once.
    """
    operations = [each for each in operations_of(principal, row) if only is None or each == only]
    if not operations:
        principal.require(Permission.READ, row.name)
    if view.status == "lost":
        raise Problem(Code.GROUP_LOST)
    if not view.replicas:
        raise Problem(Code.GROUP_NOT_READY, f"The group is {view.status} and has no servers.", retry_after_s=1)
    tls = await _tls(services)
    layout = partitions.layout if partitions is not None else 0
    now = datetime.now(UTC)
    until = credentials.token_end(principal, now)
    await credentials.note_token(work.scope, principal, until, now)

    def sign(group_id: UUID) -> Token:
        return services.signer.sign(
            str(principal.id),
            group_id,
            operations,
            now,
            until=until,
            credential_id=principal.credential.id,
            project_id=row.project_id,
            layout=layout,
        )

    token = sign(row.id)
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return Handle(
        group_id=row.id,
        name=row.name,
        epoch=view.epoch,
        endpoints=_endpoints(view),
        token=token.text,
        token_expires_at=token.expires_at,
        sla=HandleSla(
            durability=row.sla["durability"],
            replication_degree=row.sla["replication_degree"],
            request_size_bytes=row.sla["request_size_bytes"],
            rate_per_s=row.sla["rate_per_s"],
        ),
        charges=view.charges,
        limits=HandleLimits(
            max_entry_bytes=limits.ENTRY_BYTES_MAX,
            max_batch_bytes=limits.BATCH_BYTES_MAX,
            max_batch_entries=limits.BATCH_ENTRIES_MAX,
            window_batches=limits.SESSION_WINDOW_BATCHES,
        ),
        guarantee=_guarantee(view),
        partitions=_partitions(partitions, sign) if partitions is not None and layout > 0 else None,
        tls=tls,
        traceparent=carrier.get("traceparent"),
    )


def _endpoints(view: GroupView) -> list[Endpoint]:
    return [
        Endpoint(server_id=replica.server_id, address=replica.address, role=replica.role) for replica in view.replicas
    ]


def _partitions(view: PartitionsView, sign: Callable[[UUID], Token]) -> HandlePartitions:
    """Partitions that clients use. A lost one has no endpoints: the others go on."""
    return HandlePartitions(
        key_hash=KEY_HASH,
        layout=view.layout,
        changes=[HandleLayoutChange.model_validate(change.model_dump()) for change in view.changes],
        members=[
            HandlePartition(
                partition=number,
                group_id=part.group_id,
                epoch=part.epoch,
                endpoints=_endpoints(part),
                token=sign(part.group_id).text,
                rate_per_s=part.sla.rate_per_s,
                charges=part.charges,
            )
            for number, part in enumerate(view.partitions[: view.in_use])
        ],
    )


def _guarantee(view: GroupView) -> HandleGuarantee | None:
    if view.shared_tokens_per_s == 0 or view.request_milli_tokens is None:
        return None
    return HandleGuarantee(
        shared_tokens_per_s=view.shared_tokens_per_s,
        tokens_per_append=view.request_milli_tokens / 1_000,
        shared_appends_per_s=view.shared_tokens_per_s * 1_000 // view.request_milli_tokens,
    )


async def _tls(services: Services) -> HandleTls:
    try:
        ca_pem = await services.coordinator.authority_pem()
    except CoordinatorUnavailable as error:
        detail = "The fleet's certificate authority is not known yet."
        raise Problem(Code.COORDINATOR_UNAVAILABLE, detail, retry_after_s=2) from error
    return HandleTls(required=not services.settings.plaintext_allowed, ca_pem=ca_pem)


def operations_of(principal: Principal, row: Row[Any]) -> list[str]:
    """The caller's operations on the group's log."""
    operations = (Permission.APPEND, Permission.READ)
    return [str(operation) for operation in operations if principal.allowed.has(operation, row.name)]
