"""A group's name and its protection from deletion: neither is part of the SLA, and no server knows them."""

from uuid import UUID

from sqlalchemy import Row

from quorate_api.access.permissions import Permission
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem, not_found
from quorate_api.groups import partitioning, service
from quorate_api.groups.repository import GroupRepository
from quorate_api.groups.schemas import GroupSettings
from quorate_api.http.principal import Principal
from quorate_api.partitioned.repository import PartitionedRepository
from quorate_api.quotas import service as quotas


async def change(
    work: Work, principal: Principal, group_id: UUID, asked: GroupSettings, if_match: str | None
) -> Row[object]:
    """Raises `permission_denied` for a key that may not manage the new name, and for whoever may manage groups and not
    administer them and takes a protection away."""
    await quotas.lock(work)  # partitions that are added meanwhile would keep the former name
    row = await service.visible(work, principal, group_id, Permission.MANAGE)
    service.require_whole(row)
    service.require_unchanged(row, if_match)
    if row.status == "deleting":
        raise not_found("group")
    if row.deletion_protection and not asked.deletion_protection:
        principal.require(Permission.ADMINISTER)
    groups = GroupRepository(work.scope)
    if asked.name != row.name:
        principal.require(Permission.MANAGE, asked.name)
        await _rename(work, groups, row, asked.name)
    if asked.deletion_protection != row.deletion_protection:
        await groups.protect(group_id, asked.deletion_protection)
        verb = "protected from deletion" if asked.deletion_protection else "no longer protected from deletion"
        await service.note(work, group_id, "protection_changed", f"The group {asked.name} is {verb}.")
    return await service.visible(work, principal, group_id)


async def _rename(work: Work, groups: GroupRepository, row: Row[object], name: str) -> None:
    members = await PartitionedRepository(work.scope).members(row.id)
    partitioning.check_name(name, len(members))
    if await groups.names_taken(row.project_id, partitioning.names(name, len(members)), but=row.id):
        errors = [FieldError(field="name", message="Another group of the project has this name.")]
        raise Problem(Code.NAME_TAKEN, errors=errors)
    await groups.rename(row.id, name)
    await service.note(work, row.id, "renamed", f"The group {row.name} is called {name} now.")
