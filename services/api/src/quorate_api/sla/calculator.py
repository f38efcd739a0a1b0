"""The SLA report of a group from its judged minutes. Pure: checked against a brute-force oracle."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quorate_api.outside.verdict import Unreachable
from quorate_api.promises.availability import PPM
from quorate_api.sla.minutes import Minute, judge
from quorate_api.sla.promise import Promise
from quorate_api.sla.tally import Tally, tally
from quorate_api.sla.targets import AVAILABILITY, KEPT, LATENCY, THROUGHPUT, Clause
from quorate_api.telemetry import histogram
from quorate_api.telemetry.windows import WINDOW_S, Window


@dataclass(frozen=True, slots=True)
class Incident:
    """A run of bad minutes."""

    clause: str
    start_s: int
    end_s: int
    reason: str


@dataclass(frozen=True, slots=True)
class Attainment:
    clause: Clause
    attained_ppm: int | None  # None: nothing was counted
    good_minutes: int
    bad_minutes: int

    @property
    def met(self) -> bool:
        return self.attained_ppm is None or self.attained_ppm >= self.clause.target_ppm

    @property
    def credit_percent(self) -> int:
        return 0 if self.attained_ppm is None else self.clause.credit_percent(self.attained_ppm)


@dataclass(frozen=True, slots=True)
class Report:
    minutes_counted: int
    elapsed_ms: int
    active_ms: int
    p99_us: int | None
    latency_target_us: int
    attainments: tuple[Attainment, ...]
    incidents: tuple[Incident, ...]
    bad_minutes: tuple[Minute, ...]


def report(windows: Iterable[Window], promise: Promise, from_ms: int, to_ms: int, outside: Unreachable) -> Report:
    """Report on [from_ms, to_ms), all of it from windows and the verdict from outside. `judge` says more of them."""
    judged = judge(windows, from_ms, to_ms, promise.latency_us_at, outside)
    bad = [minute for minute in judged.minutes if not minute.is_good]
    return concluded(tally(judged), bad, promise)


def concluded(total: Tally, bad: Sequence[Minute], promise: Promise) -> Report:
    """The report on minutes that were judged and summed up. `bad`: those that miss a clause, oldest first."""
    clauses = promise.clauses
    missed = {clause: [minute for minute in bad if misses(minute, clause)] for clause in clauses}
    good = {
        promise.availability: total.available_minutes,
        THROUGHPUT: total.unthrottled_minutes,
        LATENCY: total.timely_minutes,
    } | {clause: total.minutes - len(missed[clause]) for clause in KEPT}
    shares = {clause: (good[clause], total.minutes) for clause in clauses}
    shares[promise.availability] = (total.active_ms, total.elapsed_ms)
    attainments = tuple(
        Attainment(clause, share * PPM // whole if whole else None, good[clause], total.minutes - good[clause])
        for clause, (share, whole) in shares.items()
    )
    incidents = [incident for clause in clauses for incident in _incidents(clause, missed[clause])]
    return Report(
        total.minutes,
        total.elapsed_ms,
        total.active_ms,
        histogram.quantile_us(total.latency_us, 990),
        promise.latency_us_now,
        attainments,
        tuple(sorted(incidents, key=lambda incident: incident.start_s)),
        tuple(bad),
    )


def misses(minute: Minute, clause: Clause) -> bool:
    """Whether the minute is bad for this clause."""
    if clause in KEPT:
        return bool(minute.breached(clause.name))
    if clause.name == AVAILABILITY.name:
        return not minute.is_available
    return not (minute.is_unthrottled if clause is THROUGHPUT else minute.is_timely)


def _incidents(clause: Clause, missed: list[Minute]) -> list[Incident]:
    runs: list[list[Minute]] = []
    for minute in missed:
        if runs and runs[-1][-1].start_s + WINDOW_S == minute.start_s:
            runs[-1].append(minute)
        else:
            runs.append([minute])
    return [Incident(clause.name, run[0].start_s, run[-1].start_s + WINDOW_S, _reason(clause, run)) for run in runs]


def _reason(clause: Clause, run: list[Minute]) -> str:
    """The measurements, then the reasons of operators. A breach has a reason alone."""
    if clause in KEPT:
        return " ".join(dict.fromkeys(reason for minute in run for reason in minute.breached(clause.name)))
    reasons = list(dict.fromkeys(minute.declared for minute in run if minute.declared is not None))
    declared = "".join(f" Declared bad: {reason.rstrip('.')}." for reason in reasons)
    measured = [minute for minute in run if minute.declared is None]
    return f"{_measured(clause, measured) if measured else ''}{declared}".strip()


def _measured(clause: Clause, run: list[Minute]) -> str:
    unmeasured = sum(not minute.measured for minute in run)
    missing = f"; no telemetry in {unmeasured} of {len(run)} minutes" if unmeasured else ""
    if unmeasured == len(run):
        return "No telemetry, and the group cannot show that it had no traffic."
    if clause.name == AVAILABILITY.name:
        lost_ms = sum(minute.elapsed_ms - minute.active_ms for minute in run)
        cut_ms = sum(minute.unreachable_ms for minute in run)
        outside = f"; clients could not reach the head for {cut_ms / 1000:.1f} s" if cut_ms else ""
        return f"Appends were not accepted for {lost_ms / 1000:.1f} s{outside}{missing}."
    if clause is THROUGHPUT:
        throttled = sum(minute.throttled_within_sla_entries for minute in run)
        within = sum(minute.within_sla_entries for minute in run)
        late = sum(minute.late_read_entries for minute in run)
        owed = sum(minute.owed_read_entries for minute in run)
        parts = [f"{throttled} of {within} entries within the reservation were throttled"] if throttled else []
        parts += [f"{late} of {owed} reads within the reservation were late"] if late else []
        return f"{', and '.join(parts)}{missing}."
    worst = max(run, key=lambda minute: minute.p99_us or 0)
    above = f"above {worst.target_us / 1000:.1f} ms"
    return f"p99 of commit latency was up to {(worst.p99_us or 0) / 1000:.1f} ms, {above}{missing}."
