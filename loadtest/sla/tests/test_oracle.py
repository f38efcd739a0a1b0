"""The calculator agrees with the oracle, and the oracle notices each calculator that is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate_api.outside import verdict
from quorate_api.outside.verdict import unreachable
from quorate_api.sla import calculator, minutes
from quorate_api.sla.minutes import Minute
from quorate_api.sla.promise import Promise
from quorate_sla.oracle import compare, reports, service, truth
from quorate_sla.oracle.compare import disagreements, live
from quorate_sla.oracle.life import BEGIN_MS, MINUTE_MS, Append, Bounds, Life, Outage, Reign

SEEDS = range(100)


def test_the_calculator_agrees() -> None:
    found = {seed: differences for seed in SEEDS if (differences := disagreements(seed))}
    assert not found


def test_months_have_everything_in_them() -> None:
    lives = [live(seed) for seed in SEEDS]
    outages = {outage.kind for life in lives for reign in life.reigns for outage in reign.outages}
    assert outages == {"chain", "process"}
    assert any(reign.crashes for life in lives for reign in life.reigns)
    assert any(reign.haunts_ms for life in lives for reign in life.reigns)
    for has in (
        lambda life: len(life.bounds) > 1,
        lambda life: life.lost,
        lambda life: life.declarations,
        lambda life: life.deleted_ms,
        lambda life: len(life.minutes) > 100,
    ):
        assert any(has(life) for life in lives)
    bad = {clause for life in lives for minute in judged(life).minutes for clause in minute.bad}
    assert bad == {"availability", "throughput", "latency", "durability", "order"}


def judged(life: Life) -> truth.Verdict:
    return truth.judge(life, service.serve(life), reports.heard(life))


# --- Calculators that are wrong


minutes_ruled = minutes.ruled


def whole_times(heads: Any, from_ms: int, to_ms: int) -> list[Any]:
    """As if heads had lost nothing."""
    return [replace(time, accepted_ms=time.to_ms - time.from_ms) for time in minutes_ruled(heads, from_ms, to_ms)]


def both_lost(times: Any, cut_ms: int, elapsed_ms: int) -> int:
    return max(0, sum(time.accepted_ms for time in times) - cut_ms)


def one_prober(looks: Any) -> Any:
    """As if there were no other."""
    return unreachable([look for look in looks if look.prober == "p0"])


def all_throttled(minute: Minute) -> bool:
    return minute.throttled_within_sla_entries == 0


def never_timely(minute: Minute) -> bool:
    return (minute.p99_us or 0) < minute.target_us // 2


def bound_now(promise: Promise, _: int) -> int:
    return promise.latency_us_now


def every_gap(heads: Any) -> dict[int, int]:
    found = sorted(heads)
    return dict.fromkeys(set(range(found[0], found[-1], 60)) - set(found), 1) if found else {}


MISTAKES: dict[str, tuple[Any, str, Any]] = {
    "time in which a head was paused counts": (minutes, "ruled", whole_times),
    "one refused entry makes a minute bad": (Minute, "is_unthrottled", property(all_throttled)),
    "the bound on latency is half of it": (Minute, "is_timely", property(never_timely)),
    "the last bound holds for all minutes": (Promise, "latency_us_at", bound_now),
    "every gap in the telemetry is quiet": (minutes, "_quiet_minutes", every_gap),
    "no gap in the telemetry is quiet": (minutes, "_quiet_minutes", lambda heads: {}),
    "former heads count": (minutes, "_heads", None),
    "breaches do not count": (Minute, "breached", lambda minute, clause: []),
    "short pauses make a minute bad": (minutes, "PAUSE_MS_MAX", 0),
    "what probers see counts besides what heads lose": (minutes, "active_ms", both_lost),
    "what probers see does not count": (compare, "unreachable", lambda looks: {}),
    "the first prober decides alone": (compare, "unreachable", one_prober),
    "a lone prober that reaches nothing is believed": (verdict, "cut_off", lambda look: []),
    "a tenth of refusals is forgiven": (minutes, "THROTTLED_PPM_MAX", 100_000),
}


# Seeds from which on a mistake shows within a hundred months.
RARE = {"former heads count": 350}


def every_head(windows: Any) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for window in windows:
        if window.is_head:
            found.setdefault(window.window_start_s, []).append(window)
    return found


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong = MISTAKES[mistake]
    monkeypatch.setattr(owner, name, every_head if wrong is None else wrong)
    first = RARE.get(mistake, 0)
    assert any(disagreements(seed) for seed in range(first, first + 100)), mistake


def test_a_credit_by_another_table_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def percent(attainment: Any) -> int:
        return 10 if not attainment.met else 0

    monkeypatch.setattr(calculator.Attainment, "credit_percent", property(percent))
    assert any(disagreements(seed) for seed in SEEDS)


# --- The truth, by hand

REIGN = Reign(1, 1, "a", BEGIN_MS, BEGIN_MS + 3 * MINUTE_MS, False, 0, ())


def life(*appends: Append, outage: Outage | None = None) -> Life:
    reign = Reign(1, 1, "a", BEGIN_MS, BEGIN_MS + 3 * MINUTE_MS, False, 0, (outage,) if outage else ())
    bounds = (Bounds(None, 64, "standard", 2_000),)
    return Life(
        0, 10, "in_memory", 999_500, BEGIN_MS, None, BEGIN_MS + 3 * MINUTE_MS, (reign,), bounds, appends, (), ()
    )


def every_100_ms(entries: int, latency_us: int = 100) -> list[Append]:
    times = range(BEGIN_MS + MINUTE_MS, BEGIN_MS + 2 * MINUTE_MS, 100)
    return [Append(at_ms, entries, 1_000, latency_us) for at_ms in times]


def bad(found: Life) -> list[set[str]]:
    return [set(minute.bad) for minute in judged(found).minutes]


def test_appends_within_the_rate_make_good_minutes() -> None:
    assert bad(life(*every_100_ms(1))) == [set(), set(), set()]


def test_overload_makes_no_minute_bad() -> None:
    outcomes = service.serve(life(*every_100_ms(3)))
    assert sum(not each.is_owed for each in outcomes) > 300
    assert bad(life(*every_100_ms(3))) == [set(), set(), set()]


def test_slow_commits_are_seen_and_counted_from_the_start() -> None:
    assert bad(life(*every_100_ms(1, latency_us=2_100))) == [set(), {"latency"}, set()]


def test_an_outage_is_lost_time_and_owed_entries_are_refused() -> None:
    from_ms = BEGIN_MS + MINUTE_MS + 10_000
    found = life(*every_100_ms(1), outage=Outage(from_ms, from_ms + 6_000, "chain"))
    verdict = judged(found)
    assert [minute.active_ms for minute in verdict.minutes] == [59_000, 54_000, 60_000]
    assert set(verdict.minutes[1].bad) == {"availability", "throughput", "latency"}
    assert verdict.credits["availability"] == 25, "6 of 179 seconds"
