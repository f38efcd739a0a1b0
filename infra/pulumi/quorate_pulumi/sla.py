"""A group's inputs: fields, bounds and defaults as in sdk/contract/openapi.json. Pure."""

from __future__ import annotations

import ipaddress
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Number:
    least: int
    most: int
    required: bool = False
    default: int | None = None


NUMBERS: dict[str, Number] = {
    "replication_degree": Number(1, 7, required=True),
    "request_size_bytes": Number(1, 1 << 20, required=True),
    "rate_per_s": Number(1, 100_000_000, required=True),
    "read_rate_per_s": Number(0, 100_000_000, default=0),
    "min_replicas": Number(1, 7),
    "retention_bytes": Number(1 << 20, 1 << 50, default=256 << 20),
    "retention_age_s": Number(60, 3_162_240_000),
    "partitions": Number(1, 256, default=1),
}
DURABILITIES = ("persistent", "in_memory")
LATENCIES = ("standard", "low")
REGION_DEFAULT = "local"
LATENCY_DEFAULT = "standard"
NAME_LENGTH_MAX = 100

FIXED = ("durability", "replication_degree", "region")
IN_PLACE = (
    "rate_per_s",
    "read_rate_per_s",
    "request_size_bytes",
    "min_replicas",
    "retention_bytes",
    "retention_age_s",
    "latency",
    "partitions",
)
SLA = (*FIXED, *IN_PLACE)


def normal(props: Mapping[str, Any], unknown: Any = None) -> tuple[Json, list[tuple[str, str]]]:
    """The properties with defaults and whole numbers (Pulumi's engine keeps every number as a float), and the faults by
    property. A value that is `unknown` until the apply stays as it is."""
    found = {name: value for name, value in props.items() if value is not None}
    wrong: list[tuple[str, str]] = []
    found.setdefault("region", REGION_DEFAULT)
    found.setdefault("latency", LATENCY_DEFAULT)
    for name, number in NUMBERS.items():
        if number.default is not None:
            found.setdefault(name, number.default)
        if name not in found:
            if number.required:
                wrong.append((name, "is missing"))
        elif found[name] != unknown:
            problem = _whole(found, name, number)
            if problem:
                wrong.append((name, problem))
    for name in ("api_url", "api_key", "project_id", "name", "durability", "region", "latency"):
        value = found.get(name)
        if not value or not isinstance(value, str):
            wrong.append((name, "is missing" if not value else "must be text"))
    wrong += [(name, reason) for name, reason in _texts(found, unknown)]
    degree, least = found.get("replication_degree"), found.get("min_replicas")
    if not wrong and isinstance(degree, int) and isinstance(least, int) and least > degree:
        wrong.append(("min_replicas", f"is {least}, and there are only {degree} replicas"))
    return found, wrong


def _whole(found: Json, name: str, number: Number) -> str | None:
    value = found[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        return f"must be a whole number, unlike {value!r}"
    found[name] = int(value)
    if not number.least <= value <= number.most:
        return f"must be from {number.least} to {number.most}, unlike {int(value)}"
    return None


def _texts(found: Json, unknown: Any) -> list[tuple[str, str]]:
    wrong = []
    known = {name: value for name, value in found.items() if isinstance(value, str) and value != unknown}
    if known.get("durability", DURABILITIES[0]) not in DURABILITIES:
        wrong.append(("durability", f"must be {' or '.join(DURABILITIES)}, unlike {known['durability']!r}"))
    if known.get("latency", LATENCY_DEFAULT) not in LATENCIES:
        wrong.append(("latency", f"must be {' or '.join(LATENCIES)}, unlike {known['latency']!r}"))
    if len(known.get("name", "")) > NAME_LENGTH_MAX:
        wrong.append(("name", f"is longer than {NAME_LENGTH_MAX} characters"))
    if "api_url" in known and found.get("allow_http") != unknown:
        wrong += [("api_url", reason) for reason in address_faults(known["api_url"], found.get("allow_http") is True)]
    if not known.get("api_key", "qk_").startswith("qk_"):
        wrong.append(("api_key", "begins with qk_"))
    if known.get("on_sla_change", "refuse") not in ("refuse", "replace"):
        wrong.append(("on_sla_change", f"must be refuse or replace, unlike {known['on_sla_change']!r}"))
    return wrong


def address_faults(address: str, allow_http: bool) -> list[str]:
    """Every request carries the key: over http only on this machine, unless `allow_http` is set."""
    try:
        parts = urllib.parse.urlsplit(address)
        host = parts.hostname
    except ValueError:
        return ["is no address"]
    if not host or parts.scheme not in ("https", "http"):
        return ["begins with https://"]
    if parts.scheme == "https" or allow_http or _is_loopback(host):
        return []
    return ["would have the key sent unencrypted: use https, or set allow_http if nobody can listen there"]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def sla_of(props: Mapping[str, Any]) -> Json:
    """The SLA for the API. One partition is left out: an API of an earlier version knows nothing of them."""
    asked = {name: props[name] for name in SLA if props.get(name) is not None}
    return {name: value for name, value in asked.items() if (name, value) != ("partitions", 1)}


def changed(before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    return [name for name in names if before.get(name) != after.get(name)]
