"""The handle: addresses, token and limits of a group (sdk/contract/handle.md)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from quorate.cursor import LayoutChange
from quorate.errors import HandleError
from quorate.pacing import Charges
from quorate.trust import client_context

MAX_ENTRY_BYTES_DEFAULT = 1 << 20
MAX_BATCH_BYTES_DEFAULT = 4 << 20
MAX_BATCH_ENTRIES_DEFAULT = 65_536
PARTITIONS_MAX = 256


@dataclass(frozen=True, slots=True)
class Endpoint:
    server_id: int
    address: str
    role: str


@dataclass(frozen=True, slots=True)
class Limits:
    max_entry_bytes: int = MAX_ENTRY_BYTES_DEFAULT
    max_batch_bytes: int = MAX_BATCH_BYTES_DEFAULT
    max_batch_entries: int = MAX_BATCH_ENTRIES_DEFAULT


@dataclass(frozen=True, slots=True)
class Tls:
    """The trusted authority. If one is named, TLS is used, required or not."""

    ca_pem: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The project's guarantee, which all its groups share. Appends are of the declared size."""

    shared_tokens_per_s: int
    tokens_per_append: float
    shared_appends_per_s: int


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of a group, and how keys find them (sdk/contract/partitions.md)."""

    key_hash: int
    layout: int
    changes: tuple[LayoutChange, ...]
    members: tuple[Handle, ...]
    """A handle for each partition, in order. One without endpoints has no servers now."""


@dataclass(frozen=True, slots=True)
class Handle:
    group_id: uuid.UUID
    name: str
    endpoints: tuple[Endpoint, ...]
    token: str
    epoch: int = 0
    token_expires_at: datetime | None = None
    limits: Limits = Limits()
    traceparent: str | None = None
    tls: Tls | None = None
    """None: connections are not encrypted."""
    request_size_bytes: int = 0
    """The request size of the SLA's rate; 0: not known."""
    charges: Charges | None = None
    """What batches take from the group's rate. None: appends are not paced."""
    guarantee: Guarantee | None = None
    """What this group may use beside its rate, while no other group of the project wants any. None: nothing."""
    partitions: Partitions | None = None
    """None: the group has one chain, which this handle reaches."""

    def __repr__(self) -> str:
        # The token is a secret. A logged handle must not show it.
        return f"Handle(group_id={self.group_id}, name={self.name!r}, epoch={self.epoch}, endpoints={self.endpoints!r})"

    def addresses(self) -> list[str]:
        """The replicas' addresses, the head's first."""
        ordered = sorted(self.endpoints, key=lambda endpoint: endpoint.role not in ("head", "sole"))
        return [endpoint.address for endpoint in ordered]

    @classmethod
    def parse(cls, source: Handle | Mapping[str, Any] | str | bytes) -> Handle:
        """A handle from the API's answer, as a mapping or as JSON text. Raises HandleError with the fault."""
        if isinstance(source, Handle):
            return source
        if isinstance(source, (str, bytes)):
            try:
                source = json.loads(source)
            except ValueError as problem:
                raise HandleError(f"the handle is not JSON: {problem}") from None
        if not isinstance(source, Mapping):
            raise HandleError("the handle is not a JSON object")
        try:
            return _parse(source)
        except KeyError as missing:
            raise HandleError(f"the handle lacks {missing}") from None
        except (TypeError, ValueError, AttributeError) as problem:
            raise HandleError(f"the handle is malformed: {problem}") from None


def _parse(source: Mapping[str, Any]) -> Handle:
    endpoints = _endpoints(source)
    if not endpoints:
        raise ValueError("it has no endpoints; the group may still be starting")
    limits = source.get("limits") or {}
    charges = source.get("charges")
    expires = source.get("token_expires_at")
    handle = Handle(
        group_id=uuid.UUID(str(source["group_id"])),
        name=str(source.get("name", "")),
        endpoints=endpoints,
        token=str(source["token"]),
        epoch=int(source.get("epoch", 0)),
        token_expires_at=datetime.fromisoformat(expires) if expires else None,
        limits=Limits(
            int(limits.get("max_entry_bytes", MAX_ENTRY_BYTES_DEFAULT)),
            int(limits.get("max_batch_bytes", MAX_BATCH_BYTES_DEFAULT)),
            int(limits.get("max_batch_entries", MAX_BATCH_ENTRIES_DEFAULT)),
        ),
        traceparent=source.get("traceparent"),
        tls=_tls(source.get("tls")),
        request_size_bytes=int((source.get("sla") or {}).get("request_size_bytes") or 0),
        charges=Charges.parse(charges) if charges else None,
        guarantee=_guarantee(source.get("guarantee")),
    )
    partitions = source.get("partitions")
    return handle if partitions is None else replace(handle, partitions=_partitions(handle, partitions))


def _partitions(whole: Handle, source: Mapping[str, Any]) -> Partitions:
    members = tuple(_member(whole, number, member) for number, member in enumerate(source["members"]))
    if not 1 <= len(members) <= PARTITIONS_MAX:
        raise ValueError(f"it has {len(members)} partitions")
    changes = tuple(
        LayoutChange(
            int(change["layout"]),
            int(change["from_partitions"]),
            int(change["to_partitions"]),
            tuple(int(end) for end in change["ends"]),
        )
        for change in source["changes"]
    )
    return Partitions(int(source["key_hash"]), int(source["layout"]), changes, members)


def _member(whole: Handle, number: int, source: Mapping[str, Any]) -> Handle:
    if source["partition"] != number:
        raise ValueError(f"partition {number} is missing")
    charges = source.get("charges")
    return replace(
        whole,
        group_id=uuid.UUID(str(source["group_id"])),
        name=f"{whole.name}/{number}",
        endpoints=_endpoints(source),
        token=str(source["token"]),
        epoch=int(source.get("epoch", 0)),
        charges=Charges.parse(charges) if charges else None,
    )


def _endpoints(source: Mapping[str, Any]) -> tuple[Endpoint, ...]:
    endpoints = tuple(
        Endpoint(int(item.get("server_id", 0)), str(item["address"]), str(item.get("role", "")))
        for item in source["endpoints"]
    )
    for endpoint in endpoints:
        split_address(endpoint.address)
    return endpoints


def _guarantee(source: Mapping[str, Any] | None) -> Guarantee | None:
    if source is None:
        return None
    return Guarantee(
        int(source["shared_tokens_per_s"]), float(source["tokens_per_append"]), int(source["shared_appends_per_s"])
    )


def _tls(source: Mapping[str, Any] | None) -> Tls | None:
    if source is None:
        return None
    tls = Tls(str(source["ca_pem"]), bool(source.get("required", True)))
    client_context(tls.ca_pem)  # reports an unusable authority now, not at the first connection
    return tls


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[v6]:port`. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"{address!r} is not host:port")
    return host.strip("[]"), int(port)
