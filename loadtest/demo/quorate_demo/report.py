"""The demo's findings: as checks, as a table for people, as `demo.json` for programs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate_demo.measure import Latency
from quorate_demo.verdict import Verdict
from quorate_harness.figures import Figure

FAILOVER_GAP_MS_MAX = 3_000
SERVER_MEMORY_BYTES_MAX = 300_000_000
WARM_S_MAX = 90
CLAUSES = ("availability", "throughput", "latency")


@dataclass(frozen=True)
class GroupOutcome:
    """Everything about one group. Money in micro-units; `billed` is the invoice's quantity."""

    organization: str
    durability: str
    writer: str
    reader: str
    was_head_killed: bool
    offered: int
    refused: int
    unknown: int
    verdict: Verdict
    usage_entries: int
    billed: int
    rate_per_s: int
    latency: Latency
    latency_steady: Latency
    failover_gap_ms: int
    sla: dict[str, Any]
    invoice_total_micros: int
    currency: str

    def to_json(self) -> dict[str, Any]:
        return {
            "organization": self.organization,
            "durability": self.durability,
            "writer": self.writer,
            "reader": self.reader,
            "head_killed": self.was_head_killed,
            "offered": self.offered,
            "acked": self.verdict.acked,
            "refused": self.refused,
            "unknown": self.unknown,
            "read_back": self.verdict.read_back,
            "lost": self.verdict.lost,
            "duplicated": self.verdict.duplicated,
            "reordered": self.verdict.reordered,
            "misplaced": self.verdict.misplaced,
            "corrupted": self.verdict.corrupted,
            "usage_entries": self.usage_entries,
            "billed": self.billed,
            "rate_per_s": self.rate_per_s,
            "append_p50_us": self.latency.p50_us,
            "append_p99_us": self.latency.p99_us,
            "append_steady_p50_us": self.latency_steady.p50_us,
            "append_steady_p99_us": self.latency_steady.p99_us,
            "failover_gap_ms": self.failover_gap_ms,
            "sla": self.sla,
            "invoice_total_micros": self.invoice_total_micros,
            "currency": self.currency,
        }


@dataclass(frozen=True)
class Outcome:
    """`server_memory_bytes`: the most that each server process held. `died`: processes that ended by themselves."""

    groups: list[GroupOutcome]
    refusal: dict[str, Any] | None
    killed_server: str
    server_memory_bytes: dict[str, int]
    died: list[str]
    seconds: float
    portal_url: str

    def checks(self) -> list[tuple[str, bool]]:
        """Each check as a sentence, and whether it held."""
        found = [
            ("the absurd SLA was refused, with a reason", bool(self.refusal and self.refusal.get("reason"))),
            ("no process ended by itself", not self.died),
            (
                f"every server stayed under {SERVER_MEMORY_BYTES_MAX / 1e6:.0f} MB",
                max(self.server_memory_bytes.values(), default=0) < SERVER_MEMORY_BYTES_MAX,
            ),
            ("a group lost its head", any(group.was_head_killed for group in self.groups)),
        ]
        for group in self.groups:
            name = group.organization
            found += [
                (f"{name}: every offered entry was acknowledged", group.verdict.acked == group.offered > 0),
                (f"{name}: every acknowledged entry is there once, in order", group.verdict.good),
                (f"{name}: metered usage is what was acknowledged", group.usage_entries == group.verdict.acked),
                (f"{name}: the invoice bills what was acknowledged", group.billed == group.verdict.acked),
                (f"{name}: no gap over {FAILOVER_GAP_MS_MAX} ms", group.failover_gap_ms <= FAILOVER_GAP_MS_MAX),
            ]
        return found

    @property
    def passed(self) -> bool:
        return all(held for _, held in self.checks())

    def to_json(self) -> dict[str, Any]:
        """Sums and worst values at the top, the same keys for each group below `groups`."""
        groups = [group.to_json() for group in self.groups]
        summed = ("acked", "read_back", "lost", "duplicated", "reordered", "billed", "rate_per_s")
        worst = ("append_p50_us", "append_p99_us", "failover_gap_ms")
        return {
            "passed": self.passed,
            **{key: sum(group[key] for group in groups) for key in summed},
            **{key: max(group[key] for group in groups) for key in worst},
            "refusal": self.refusal,
            "sla": {group["organization"]: group["sla"] for group in groups},
            "invoice_total_micros": sum(group["invoice_total_micros"] for group in groups),
            "groups": groups,
            "killed_server": self.killed_server,
            "server_memory_bytes": self.server_memory_bytes,
            "checks": [{"check": check, "held": held} for check, held in self.checks()],
            "seconds": round(self.seconds, 1),
        }

    def figures(self) -> list[Figure]:
        """Published figures of a run; `make demo` adds them to those of earlier runs."""
        verdicts = [group.verdict for group in self.groups]
        faults = sum(verdict.lost + verdict.duplicated + verdict.reordered for verdict in verdicts)
        unbilled = sum(abs(group.billed - group.verdict.acked) for group in self.groups)
        gap_ms = max(group.failover_gap_ms for group in self.groups)
        return [
            Figure("demo_failover_gap_ms", gap_ms, "ms", FAILOVER_GAP_MS_MAX),
            Figure("demo_entries_lost_duplicated_reordered", faults, "entries", 0),
            Figure("demo_entries_billed_minus_acked", unbilled, "entries", 0),
            Figure("demo_warm_s", self.seconds, "s", WARM_S_MAX),
        ]

    def lines(self) -> list[str]:
        """The table for people."""
        rows = [
            ("", [group.organization for group in self.groups]),
            ("durability", [group.durability.replace("_", "-") for group in self.groups]),
            ("written with, read with", [f"{group.writer}, {group.reader}" for group in self.groups]),
            ("entries acknowledged", [f"{group.verdict.acked:,}" for group in self.groups]),
            ("entries read back", [f"{group.verdict.read_back:,}" for group in self.groups]),
            ("lost / duplicated / reordered", [_faults(group.verdict) for group in self.groups]),
            ("entries billed", [f"{group.billed:,}" for group in self.groups]),
            ("appends a second", [f"{group.rate_per_s:,}" for group in self.groups]),
            ("append p50, p99", [_latency(group.latency) for group in self.groups]),
            ("the same without failover", [_latency(group.latency_steady) for group in self.groups]),
            ("longest gap at failover", [_gap(group) for group in self.groups]),
            *(("SLA, " + name, [_attained(group.sla, name) for group in self.groups]) for name in CLAUSES),
            ("invoice so far", [money(group.invoice_total_micros, group.currency) for group in self.groups]),
        ]
        table = [f"  {title:<30}" + "".join(f"{value:>26}" for value in values) for title, values in rows]
        memory = max(self.server_memory_bytes.values(), default=0) / 1e6
        checks = [f"  {'ok    ' if held else 'FAILED'}  {check}" for check, held in self.checks()]
        return [*table, "", f"  largest server process: {memory:.0f} MB", "", *checks]


def money(micros: int, currency: str) -> str:
    return f"{micros // 1_000_000:,}.{micros % 1_000_000:06d} {currency}"


def _faults(verdict: Verdict) -> str:
    return f"{verdict.lost} / {verdict.duplicated} / {verdict.reordered}"


def _latency(latency: Latency) -> str:
    return f"{latency.p50_us / 1000:,.1f} ms, {latency.p99_us / 1000:,.1f} ms"


def _gap(group: GroupOutcome) -> str:
    return f"{group.failover_gap_ms:,} ms" + (" (head lost)" if group.was_head_killed else "")


def _attained(sla: dict[str, Any], clause: str) -> str:
    """In per cent; a clause is judged from its first whole minute on."""
    found = [each["attained"] for each in sla.get("clauses", []) if each["clause"] == clause]
    if not found or found[0] is None:
        return "no whole minute yet"
    return f"{100 * float(found[0]):.4g} %"
