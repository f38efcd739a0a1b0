"""The tables of metric names for Rust, Python and people, written from `metrics.toml`."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from quorate_local.options import REPOSITORY
from quorate_observe.metrics import Metric

BANNER = "Generated from infra/observability/metrics.toml by `make gen`; do not edit."
RUST = REPOSITORY / "services/crates/telemetry/src/metric_names.rs"
PYTHON = REPOSITORY / "services/api/src/quorate_api/observability/metric_names.py"
REFERENCE = REPOSITORY / "docs/reference/metrics.md"

_PYTHON_WIDTH = 120  # line-length of ruff.toml

_SERVERS = {"replica", "coordinator"}
_CONTROL_PLANE = {"api", "worker"}
_NAMES = {"replica": "server", "coordinator": "coordinator", "api": "API", "worker": "worker"}

_RUST_HEAD = """\
//! Every metric of the servers: its name, unit and meaning.
//! {banner}

#[derive(Debug, Clone, Copy)]
pub struct Metric {{
    pub name: &'static str,
    /// UCUM's, as OpenTelemetry requires.
    pub unit: &'static str,
    pub description: &'static str,
}}

"""

_PYTHON_HEAD = '''\
"""Every metric of API and worker: its name, unit and meaning.

{banner}
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `unit` is UCUM's. `processes` export it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    processes: tuple[str, ...]
    description: str


'''

_REFERENCE_HEAD = """\
<!-- {banner} -->

# Metrics

Servers, API and worker export these over OTLP/HTTP every 10 seconds when `OTEL_EXPORTER_OTLP_ENDPOINT` (of servers also
`--otlp-endpoint`) is set, with `service.name` and `service.instance.id` as resource attributes: Prometheus' `job` and
`instance`. No metric has an attribute for a single group or customer: the API and the portal have their usage and SLIs.
[Observing](../operating/observing.md) describes their use.

| name | in Prometheus | kind | unit | from | meaning | attributes |
| --- | --- | --- | --- | --- | --- | --- |
"""


def generated(metrics: list[Metric]) -> dict[Path, str]:
    return {RUST: rust(metrics), PYTHON: python(metrics), REFERENCE: reference(metrics)}


def rust(metrics: list[Metric]) -> str:
    own = [metric for metric in metrics if _SERVERS & set(metric.processes)]
    text = _RUST_HEAD.format(banner=BANNER)
    for metric in own:
        text += f"pub const {metric.constant}: Metric = Metric {{\n"
        text += f"    name: {_quoted(metric.name)},\n"
        text += f"    unit: {_quoted(metric.unit)},\n    description: {_quoted(metric.description)},\n}};\n"
    text += f"\n/// In the order of the reference.\npub const ALL: [Metric; {len(own)}] = [\n"
    return text + "".join(f"    {metric.constant},\n" for metric in own) + "];\n"


def python(metrics: list[Metric]) -> str:
    own = [metric for metric in metrics if _CONTROL_PLANE & set(metric.processes)]
    text = _PYTHON_HEAD.format(banner=BANNER)
    for metric in own:
        processes = tuple(process for process in metric.processes if process in _CONTROL_PLANE)
        shown = ", ".join(_quoted(process) for process in processes) + ("," if len(processes) == 1 else "")
        text += f"{metric.constant} = Metric(\n    {_quoted(metric.name)},\n    {_quoted(metric.kind)},\n"
        text += f"    {_quoted(metric.unit)},\n    ({shown}),\n{_wrapped(metric.description)},\n)\n"
    return text + "\nALL = (\n" + "".join(f"    {metric.constant},\n" for metric in own) + ")\n"


def reference(metrics: list[Metric]) -> str:
    text = _REFERENCE_HEAD.format(banner=BANNER)
    for metric in metrics:
        attributes = "; ".join(
            f"`{name}`" + (f": {', '.join(values)}" if values else "") for name, values in metric.attributes.items()
        )
        processes = ", ".join(_NAMES[process] for process in metric.processes)
        cells = [f"`{metric.name}`", f"`{metric.prometheus_name}`", metric.kind, f"`{metric.unit}`"]
        text += "| " + " | ".join([*cells, processes, metric.description, attributes]) + " |\n"
    return text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _wrapped(text: str) -> str:
    """A literal, over several lines if one would be too long."""
    if len(f"    {_quoted(text)},") <= _PYTHON_WIDTH:
        return f"    {_quoted(text)}"
    parts = textwrap.wrap(text, width=100, drop_whitespace=False)
    return "\n".join(f"    {_quoted(part)}" for part in parts)
