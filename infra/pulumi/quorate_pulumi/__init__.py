"""Quorate in Pulumi programs: docs/operating/pulumi.md."""

from quorate_pulumi.fleet import FleetContract, FleetContractError, LoadTestFleet, LoadTestFleetArgs
from quorate_pulumi.group import Group, GroupArgs

__all__ = ["FleetContract", "FleetContractError", "Group", "GroupArgs", "LoadTestFleet", "LoadTestFleetArgs"]
