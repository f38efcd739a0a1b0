"""Groups for a load test, on the fleet in Terraform's output `quorate_fleet`, version 1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from quorate_pulumi.group import Durability, Group, GroupArgs

VERSION = 1


class FleetContractError(ValueError):
    """The fleet's description is not valid for this package. The message names the field."""


@dataclass(frozen=True)
class Server:
    id: int
    address: str


@dataclass(frozen=True)
class FleetContract:
    """Parse `terraform output -json quorate_fleet`. Unknown fields are ignored, as the contract says."""

    region: str
    rdma_kind: str
    rdma_ordered: bool
    servers: Mapping[str, Server]

    @classmethod
    def parse(cls, source: str | Mapping[str, Any]) -> FleetContract:
        """Raises FleetContractError."""
        if isinstance(source, str):
            try:
                source = json.loads(source)
            except ValueError as problem:
                raise FleetContractError(f"quorate_fleet is not JSON: {problem}") from None
        if not isinstance(source, Mapping):
            raise FleetContractError("quorate_fleet is not a JSON object")
        version = _field(source, "version", int)
        if version != VERSION:
            raise FleetContractError(
                f"quorate_fleet.version is {version}, and this package understands {VERSION}: renew the older one"
            )
        rdma = _field(source, "rdma", Mapping)
        servers = _field(source, "servers", Mapping)
        if not servers:
            raise FleetContractError("quorate_fleet.servers is empty")
        return cls(
            region=_field(source, "region", str),
            rdma_kind=_field(rdma, "kind", str, "rdma."),
            rdma_ordered=_field(rdma, "ordered", bool, "rdma."),
            servers={name: _server(servers, name) for name in servers},
        )


def _server(servers: Mapping[str, Any], name: str) -> Server:
    server = _field(servers, name, Mapping, "servers.")
    at = f"servers.{name}."
    return Server(_field(server, "id", int, at), _field(server, "address", str, at))


_IN_WORDS = {int: "a whole number", str: "text", bool: "true or false", Mapping: "an object"}


def _field(source: Mapping[str, Any], name: str, kind: Any, at: str = "") -> Any:
    if name not in source:
        raise FleetContractError(f"quorate_fleet lacks {at}{name}")
    value = source[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise FleetContractError(f"quorate_fleet.{at}{name} is not {_IN_WORDS[kind]}: {value!r}")
    return value


@dataclass(frozen=True, kw_only=True)
class LoadTestGroupsArgs:
    fleet: str | Mapping[str, Any]
    """`quorate_fleet`, as JSON or as an object."""
    groups: int
    api_url: pulumi.Input[str]
    api_key: pulumi.Input[str]
    """A key of the project with the scopes `manage`, `append` and `read`."""
    project_id: pulumi.Input[str]
    durability: Durability
    replication_degree: int
    request_size_bytes: pulumi.Input[int]
    rate_per_s: pulumi.Input[int]
    """The rate of each group."""
    retention_bytes: pulumi.Input[int] | None = None
    allow_http: bool = False
    """As for a group."""


class LoadTestGroups(pulumi.ComponentResource):
    """`groups` equal groups, NAME-1 and on, in the fleet's region. Another durability or degree replaces them, because
    no one needs a load test's entries."""

    groups: list[Group]
    servers: pulumi.Output[dict[str, str]]
    """The servers' addresses by name."""

    def __init__(self, name: str, args: LoadTestGroupsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        fleet = FleetContract.parse(args.fleet)
        if args.groups < 1:
            raise ValueError(f"LoadTestGroups {name!r}: groups must be at least 1, unlike {args.groups}")
        if args.replication_degree > len(fleet.servers):
            raise ValueError(
                f"LoadTestGroups {name!r}: replication_degree is {args.replication_degree}, and quorate_fleet has "
                f"{len(fleet.servers)} servers"
            )
        super().__init__("quorate:index:LoadTestGroups", name, {}, opts)
        self.groups = [
            Group(f"{name}-{number}", _group(args, fleet), pulumi.ResourceOptions(parent=self))
            for number in range(1, args.groups + 1)
        ]
        self.servers = pulumi.Output.from_input({key: server.address for key, server in fleet.servers.items()})
        self.register_outputs({"groups": [group.group_id for group in self.groups], "servers": self.servers})

    @property
    def handles(self) -> pulumi.Output[dict[str, str]]:
        """The load driver's handles as JSON, by group. `quorate-load --handle` takes each in a file of its own. They
        are secret and expire within the hour: take them right before the load."""
        return pulumi.Output.secret(pulumi.Output.all(**{group.name: group.handle for group in self.groups}))


def _group(args: LoadTestGroupsArgs, fleet: FleetContract) -> GroupArgs:
    return GroupArgs(
        api_url=args.api_url,
        api_key=args.api_key,
        project_id=args.project_id,
        durability=args.durability,
        replication_degree=args.replication_degree,
        request_size_bytes=args.request_size_bytes,
        rate_per_s=args.rate_per_s,
        retention_bytes=args.retention_bytes,
        region=fleet.region,
        allow_http=args.allow_http,
        on_sla_change="replace",
    )
