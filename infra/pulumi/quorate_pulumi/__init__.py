"""Quorate in Pulumi programs: docs/operating/pulumi.md."""

from quorate_pulumi.fleet import FleetContract, FleetContractError, LoadTestGroups, LoadTestGroupsArgs
from quorate_pulumi.group import Group, GroupArgs
from quorate_pulumi.guarantee import ProjectGuarantee, ProjectGuaranteeArgs

__all__ = [
    "FleetContract",
    "FleetContractError",
    "Group",
    "GroupArgs",
    "LoadTestGroups",
    "LoadTestGroupsArgs",
    "ProjectGuarantee",
    "ProjectGuaranteeArgs",
]
