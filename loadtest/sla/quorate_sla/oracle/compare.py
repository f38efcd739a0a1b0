"""Gives a life's telemetry to the calculator, and compares its report with the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from quorate_api.corrections.correction import BadSpan
from quorate_api.outside.verdict import Look, Unreachable, unreachable
from quorate_api.promises.availability import PPM
from quorate_api.sla import calculator
from quorate_api.sla.calculator import Report
from quorate_api.sla.declared import declared
from quorate_api.sla.minutes import Minute, judge
from quorate_api.sla.promise import Promise
from quorate_api.sla.tally import Tally, summed, tally
from quorate_api.telemetry.windows import Window, merged
from quorate_sla.oracle import outside, reports, service, telemetry, truth
from quorate_sla.oracle.life import BEGIN_MS, MINUTE_MS, Life, Prober, draw

JUDGED_MS = 1_000  # the first and the last second are not judged
PIECE_MINUTES = 4  # as the worker judges hours


def disagreements(seed: int) -> list[str]:
    """Differences of the calculator's report from the truth about the life of this seed, in words."""
    life = live(seed)
    outcomes = service.serve(life)
    arrived = reports.heard(life)
    verdict = truth.judge(life, outcomes, arrived)
    windows = merged(telemetry.windows_of(life, outcomes, arrived))
    whole, pieces = (_report(life, *how(life, windows)) for how in (_judged_whole, _judged_in_pieces))
    found = list(_differences(life, whole, verdict))
    return found + [f"in pieces: {each}" for each in _differences(life, pieces, verdict)]


def live(seed: int) -> Life:
    life = draw(seed)
    return replace(life, probers=outside.draw(life))


def seen(life: Life) -> Unreachable:
    """The verdict of the service on what probers told."""
    failing = {
        number
        for prober in life.probers
        for _, from_ms, to_ms in prober.failed
        for number in range((from_ms - BEGIN_MS) // MINUTE_MS, (to_ms - BEGIN_MS) // MINUTE_MS + 1)
    }
    looks = [
        Look(prober.name, (BEGIN_MS + number * MINUTE_MS) // 1_000, _failed(prober, number))
        for prober in life.probers
        for number in sorted(failing - prober.silent)
    ]
    return unreachable(looks)


def _failed(prober: Prober, number: int) -> dict[int, list[tuple[int, int]]]:
    begin_ms = BEGIN_MS + number * MINUTE_MS
    return {
        server: [(begin_ms + from_ms, begin_ms + to_ms) for from_ms, to_ms in prober.fails(server, number)]
        for server in prober.watches
    }


def span_ms(life: Life) -> tuple[int, int]:
    from_ms = life.active_ms + JUDGED_MS
    to_ms = life.end_ms if life.deleted_ms is None else life.deleted_ms - JUDGED_MS
    return from_ms, max(from_ms, to_ms)


def promise_of(life: Life) -> Promise:
    slas = (
        (
            inf if bounds.until_ms is None else bounds.until_ms / 1_000,
            {"durability": life.durability, "latency": bounds.latency, "request_size_bytes": bounds.size_bytes},
        )
        for bounds in life.bounds
    )
    return Promise.of(life.availability_ppm, slas)


def _judged_whole(life: Life, windows: Sequence[Window]) -> tuple[Tally, list[Minute]]:
    judged = judge(windows, *span_ms(life), promise_of(life).latency_us_at, seen(life))
    return tally(judged), [minute for minute in judged.minutes if not minute.is_good]


def _judged_in_pieces(life: Life, windows: Sequence[Window]) -> tuple[Tally, list[Minute]]:
    """Piece by piece, each with windows around it as the worker reads them (`HeadRepository.around`)."""
    from_ms, to_ms = span_ms(life)
    tallies, bad = [], []
    verdict = seen(life)
    for first in range(0, len(life.minutes), PIECE_MINUTES):
        begin_ms = BEGIN_MS + first * MINUTE_MS
        end_ms = begin_ms + PIECE_MINUTES * MINUTE_MS
        bounds = max(begin_ms, from_ms), min(end_ms, to_ms)
        if bounds[0] >= bounds[1]:
            continue
        around = _around(windows, begin_ms // 1_000, end_ms // 1_000)
        judged = judge(around, *bounds, promise_of(life).latency_us_at, verdict)
        tallies.append(tally(judged))
        bad += [minute for minute in judged.minutes if not minute.is_good]
    return summed(tallies), bad


def _around(windows: Sequence[Window], from_s: int, to_s: int) -> list[Window]:
    heads = [window for window in windows if window.is_head and window.active_ms > 0]
    before = max((window.window_start_s for window in heads if window.window_start_s < from_s), default=None)
    after = min((window.window_start_s for window in heads if window.window_start_s >= to_s), default=None)
    return [
        window
        for window in windows
        if (from_s if before is None else before) <= window.window_start_s < (to_s if after is None else after + 1)
    ]


def _report(life: Life, total: Tally, bad: list[Minute]) -> Report:
    spans = [
        BadSpan(
            (BEGIN_MS + each.from_minute * MINUTE_MS) // 1_000,
            (BEGIN_MS + each.to_minute * MINUTE_MS) // 1_000,
            "declared",
            each.breaches,
        )
        for each in life.declarations
    ]
    promise = promise_of(life)
    return calculator.concluded(*declared(total, bad, spans, span_ms(life), promise), promise)


def _differences(life: Life, report: Report, verdict: truth.Verdict) -> Iterator[str]:
    if report.minutes_counted != len(verdict.minutes):
        yield f"{report.minutes_counted} minutes are judged, and not {len(verdict.minutes)}"
    attained = {each.clause.name: each for each in report.attainments}
    for clause, attainment in attained.items():
        said = {
            (minute.start_s * 1_000 - BEGIN_MS) // MINUTE_MS
            for minute in report.bad_minutes
            if calculator.misses(minute, attainment.clause)
        }
        true = {minute.number for minute in verdict.minutes if clause in minute.bad}
        if said != true:
            yield f"{clause}: minutes {sorted(said - true)} are wrongly bad, {sorted(true - said)} wrongly good"
        if attainment.bad_minutes != len(true):
            yield f"{clause}: {attainment.bad_minutes} bad minutes are told, and not {len(true)}"
        if attainment.credit_percent != verdict.credits[clause]:
            yield f"{clause}: a credit of {attainment.credit_percent} %, and not {verdict.credits[clause]} %"
    said_ppm = attained["availability"].attained_ppm
    true_ppm = None if verdict.active is None else int(verdict.active * PPM)
    if said_ppm != true_ppm:
        yield f"availability: {said_ppm} ppm are told, and not {true_ppm}"
