"""Every metric of API and worker: its name, unit and meaning.

Generated from infra/observability/metrics.toml by `make gen`; do not edit.
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


MEMORY = Metric(
    "process.memory.usage",
    "gauge",
    "By",
    ("api", "worker"),
    "Resident memory of the process.",
)
CPU_TIME = Metric(
    "process.cpu.time",
    "counter",
    "s",
    ("api", "worker"),
    "CPU time of the process, of all its threads.",
)
DEPENDENCY_UP = Metric(
    "quorate.dependency.up",
    "gauge",
    "{dependency}",
    ("api", "worker"),
    "1 if it answered the last probe, else 0. PostgreSQL with an old schema counts as not answering.",
)
DEPENDENCY_DURATION = Metric(
    "quorate.dependency.duration",
    "gauge",
    "s",
    ("api", "worker"),
    "Duration of the last probe.",
)
DATABASE_CONNECTIONS = Metric(
    "quorate.database.connections",
    "gauge",
    "{connection}",
    ("api", "worker"),
    "Connections to PostgreSQL: the used ones, and the allowed maximum.",
)
REQUEST_DURATION = Metric(
    "http.server.request.duration",
    "histogram",
    "s",
    ("api",),
    "Duration of a request to the API. Live charts are streams: their duration is that of the view.",
)
REFUSALS = Metric(
    "quorate.api.refusals",
    "counter",
    "{request}",
    ("api",),
    "Requests answered with a problem, by its code (docs/operating/errors).",
)
FLEET_SERVERS = Metric(
    "quorate.fleet.servers",
    "gauge",
    "{server}",
    ("worker",),
    "Servers that the coordinator knows, each in its most severe state, without those that stopped after "
    "a drain. None while the coordinator is away.",
)
FLEET_PROMISED = Metric(
    "quorate.fleet.promised",
    "gauge",
    "1",
    ("worker",),
    "Promised share of the capacity of a resource that the fleet may promise. None while the coordinator "
    "is away; none of memory or disk where a server does not say how much it has.",
)
FLEET_GROUPS = Metric(
    "quorate.fleet.groups",
    "gauge",
    "{group}",
    ("worker",),
    "Customers' groups by their status. None while PostgreSQL is away.",
)
SLA_GROUPS_BAD = Metric(
    "quorate.sla.groups.bad",
    "gauge",
    "{group}",
    ("worker",),
    "Groups that missed a clause of their SLA in one of the last five minutes that are judged.",
)
USAGE_BACKLOG = Metric(
    "quorate.usage.backlog",
    "gauge",
    "{entry}",
    ("worker",),
    "Entries of the usage stream that are not in PostgreSQL yet. None while Redis is away.",
)
USAGE_REJECTED = Metric(
    "quorate.usage.rejected",
    "counter",
    "{entry}",
    ("worker",),
    "Usage records that cannot be read or cannot be true, and were set aside.",
)
TASK_FAILURES = Metric(
    "quorate.worker.task.failures",
    "counter",
    "{failure}",
    ("worker",),
    "Failures of a task of the worker that waits because a dependency is away.",
)
CLOSE_FAILURES = Metric(
    "quorate.billing.close.failures",
    "counter",
    "{failure}",
    ("worker",),
    "Failures to close or adjust an organization's months, each tried again.",
)
BILLED = Metric(
    "quorate.billing.amount",
    "counter",
    "{USD}",
    ("worker",),
    "Sum of all invoices, and of all credits, ever issued.",
)

ALL = (
    MEMORY,
    CPU_TIME,
    DEPENDENCY_UP,
    DEPENDENCY_DURATION,
    DATABASE_CONNECTIONS,
    REQUEST_DURATION,
    REFUSALS,
    FLEET_SERVERS,
    FLEET_PROMISED,
    FLEET_GROUPS,
    SLA_GROUPS_BAD,
    USAGE_BACKLOG,
    USAGE_REJECTED,
    TASK_FAILURES,
    CLOSE_FAILURES,
    BILLED,
)
