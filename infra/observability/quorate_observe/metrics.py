"""`metrics.toml`, checked, and the names of its metrics in Prometheus."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from quorate_local.options import REPOSITORY

FOLDER = REPOSITORY / "infra" / "observability"
SOURCE = FOLDER / "metrics.toml"

Kind = Literal["counter", "gauge", "histogram"]
KINDS = ("counter", "gauge", "histogram")
PROCESSES = ("replica", "coordinator", "api", "worker")

# Units as suffixes of names in Prometheus. A unit in braces is an annotation and adds none.
_SUFFIXES = {"s": "seconds", "ms": "milliseconds", "By": "bytes", "1": "ratio"}
_PER = {"s": "second", "m": "minute", "h": "hour", "d": "day"}


class BadMetrics(Exception):
    """metrics.toml is not valid. The message names the place."""


@dataclass(frozen=True)
class Metric:
    """One metric. `attributes`: the values of each, or none if they cannot be listed."""

    constant: str
    name: str
    kind: Kind
    unit: str
    processes: tuple[str, ...]
    description: str
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def prometheus_name(self) -> str:
        return prometheus_name(self.name, self.unit, self.kind)

    def series_names(self) -> tuple[str, ...]:
        """Its names in expressions."""
        base = self.prometheus_name
        return (f"{base}_bucket", f"{base}_sum", f"{base}_count") if self.kind == "histogram" else (base,)

    def labels(self) -> set[str]:
        """Labels of its series in Prometheus, with the labels that every series has."""
        own = {label_name(attribute) for attribute in self.attributes}
        return own | {"job", "instance"} | ({"le"} if self.kind == "histogram" else set())


def prometheus_name(name: str, unit: str, kind: Kind) -> str:
    """OpenTelemetry's name in Prometheus by its compatibility specification. It adds the unit unless the name has it,
    `_total` to counters, `_ratio` to gauges of unit 1."""
    words = [word for word in re.split(r"[^a-zA-Z0-9]+", name) if word]
    amount, _, per = unit.partition("/")
    suffix = None if amount.startswith("{") else _SUFFIXES.get(amount)
    if suffix is not None and suffix not in words and (unit != "1" or kind == "gauge"):
        words.append(suffix)
    if per:
        words += ["per", _PER[per]]
    if kind == "counter":
        words = [word for word in words if word != "total"] + ["total"]
    return "_".join(words)


def label_name(attribute: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", attribute)


def load(source: Path = SOURCE) -> list[Metric]:
    """The metrics in the file's order, which the reference has too."""
    found = [_metric(value) for value in tomllib.loads(source.read_text())["metric"]]
    for what in ("constant", "name", "prometheus_name"):
        values = [getattr(metric, what) for metric in found]
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise BadMetrics(f"{what} more than once: {', '.join(twice)}")
    return found


def _metric(value: dict[str, object]) -> Metric:
    name = str(value.get("name"))
    attributes = value.get("attributes", {})
    processes = value.get("from", [])
    assert isinstance(attributes, dict)
    assert isinstance(processes, list)
    unknown = set(processes) - set(PROCESSES)
    if unknown or not processes or value.get("kind") not in KINDS:
        raise BadMetrics(f"{name}: `from` must name some of {PROCESSES}, `kind` one of {KINDS}")
    amount, _, per = str(value["unit"]).partition("/")
    if not (re.fullmatch(r"\{[^{}]+\}", amount) or amount in _SUFFIXES) or (per and per not in _PER):
        raise BadMetrics(f"{name}: unit {value['unit']} is not known; known are {sorted(_SUFFIXES)} and {{…}}")
    return Metric(
        constant=str(value["constant"]),
        name=name,
        kind=value["kind"],  # type: ignore[arg-type]
        unit=str(value["unit"]),
        processes=tuple(processes),
        description=str(value["description"]),
        attributes={key: tuple(values) for key, values in attributes.items()},
    )
