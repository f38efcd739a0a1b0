"""The state of a region's components now, and on each day. Pure.

A component without measurements is unknown, and never operational.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from quorate_api import limits
from quorate_api.promises.availability import PPM
from quorate_api.telemetry.windows import DAY_S, WINDOW_S

Component = Literal["api", "admission", "data_plane", "usage"]
State = Literal["operational", "degraded", "outage", "unknown"]
COMPONENTS: tuple[Component, ...] = get_args(Component)

# Shares of groups that accept appends now, from which on the data plane is operational, or degraded.
ACCEPTING_PPM: tuple[int, int] = (999_000, 500_000)
# Shares of a day's minutes that were good: misses of a minute and a half, and of a quarter of an hour.
DAY_PPM: tuple[int, int] = (999_000, 990_000)
COVERED_PPM_MIN = 500_000  # a day of which less was measured is unknown
_SEVERITY: tuple[State, ...] = ("operational", "unknown", "degraded", "outage")


@dataclass(frozen=True, slots=True)
class Sample:
    """A region as the worker saw it. `usage_until`: all usage sent before is stored; None: none was ever sent."""

    region: str
    sampled_at: datetime
    groups: int
    accepting: int
    admits: bool
    api_reached: bool
    usage_until: datetime | None


@dataclass(frozen=True, slots=True)
class Now:
    state: State
    detail: str


@dataclass(frozen=True, slots=True)
class DaySum:
    """Counted minutes of a component on a day, and those of the last 24 hours among them."""

    region: str
    component: Component
    day_s: int
    first_hour_s: int
    minutes: int
    good_minutes: int
    recent_minutes: int
    recent_good_minutes: int


@dataclass(frozen=True, slots=True)
class Day:
    day_s: int
    state: State
    good_ppm: int | None


@dataclass(frozen=True, slots=True)
class History:
    """Shares of good minutes, oldest day first; None: nothing was counted."""

    days: list[Day]
    recent_ppm: int | None
    whole_ppm: int | None


def now_of(sample: Sample, now: datetime, *, database_answers: bool) -> dict[Component, Now]:
    """Each component's state. The API answers this question, so it is there as far as its database is."""
    if not database_answers:
        away = Now("unknown", "Its measurements cannot be read now.")
        others = dict.fromkeys(COMPONENTS, away)
        return others | {"api": Now("outage", "Calls that need the database fail. Existing groups go on.")}
    is_fresh = (now - sample.sampled_at).total_seconds() <= limits.STATUS_SAMPLE_AGE_S_MAX
    if not is_fresh:
        old = Now("unknown", "It was not measured in the last minutes.")
        return dict.fromkeys(COMPONENTS, old) | {"api": Now("operational", "Requests are answered.")}
    return {
        "api": _api(sample),
        "admission": _admission(sample),
        "data_plane": _data_plane(sample),
        "usage": _usage(sample, now),
    }


def _api(sample: Sample) -> Now:
    if sample.api_reached:
        return Now("operational", "Requests are answered.")
    return Now("degraded", "It does not answer each request at its public address.")


def _admission(sample: Sample) -> Now:
    if sample.admits:
        return Now("operational", "Groups can be created and resized.")
    return Now("outage", "Groups cannot be created or resized. Existing groups go on.")


def _data_plane(sample: Sample) -> Now:
    if sample.groups == 0:
        return Now("unknown", "No group runs here, so there is nothing to measure.")
    share_ppm = sample.accepting * PPM // sample.groups
    state = _graded(share_ppm, ACCEPTING_PPM)
    if sample.accepting == sample.groups:
        return Now(state, "All groups accept appends.")
    return Now(state, f"{share_ppm // 1_000 / 10:.1f} % of the groups accept appends.")


def _usage(sample: Sample, now: datetime) -> Now:
    if sample.groups == 0 or sample.usage_until is None:
        return Now("unknown", "No usage was sent yet.")
    age_s = max(0, int((now - sample.usage_until).total_seconds()))
    if usage_is_fresh(age_s):
        return Now("operational", "Usage and charts are up to date.")
    state: State = "degraded" if age_s <= limits.STATUS_USAGE_AGE_S_DEGRADED else "outage"
    return Now(state, f"Usage and charts are {age_s // WINDOW_S} min behind. No usage is lost.")


def usage_is_fresh(age_s: float) -> bool:
    return age_s <= limits.STATUS_USAGE_AGE_S_OPERATIONAL


def worst(states: Iterable[State]) -> State:
    """The most severe state; unknown without any."""
    return max(states, key=_SEVERITY.index, default="unknown")


def history(sums: Collection[DaySum], component: Component, now_s: int, days: int) -> History:
    """The last `days` days of a component. `sums`: its own, of one region."""
    by_day: Mapping[int, DaySum] = {one.day_s: one for one in sums}
    first_hour_s = min((one.first_hour_s for one in sums), default=now_s)
    today_s = now_s // DAY_S * DAY_S
    begins = range(today_s - (days - 1) * DAY_S, today_s + DAY_S, DAY_S)
    return History(
        [_day(day_s, by_day.get(day_s), component, first_hour_s, now_s) for day_s in begins],
        _share((one.recent_good_minutes, one.recent_minutes) for one in sums),
        _share((by_day[day_s].good_minutes, by_day[day_s].minutes) for day_s in begins if day_s in by_day),
    )


def _day(day_s: int, found: DaySum | None, component: Component, first_hour_s: int, now_s: int) -> Day:
    share_ppm = _share([(found.good_minutes, found.minutes)]) if found else None
    if found is None or share_ppm is None:
        return Day(day_s, "unknown", None)
    # A minute of a group without telemetry is judged as bad, so the data plane's minutes are never missing.
    if component != "data_plane":
        elapsed = (min(now_s, day_s + DAY_S) - max(day_s, first_hour_s)) // WINDOW_S
        if found.minutes * PPM < elapsed * COVERED_PPM_MIN:
            return Day(day_s, "unknown", share_ppm)
    return Day(day_s, _graded(share_ppm, DAY_PPM), share_ppm)


def _share(parts: Iterable[tuple[int, int]]) -> int | None:
    """The good part of the whole, rounded down: a miss never looks like none."""
    pairs = list(parts)
    good, whole = (sum(pair[place] for pair in pairs) for place in (0, 1))
    return good * PPM // whole if whole else None


def _graded(share_ppm: int, bounds_ppm: tuple[int, int]) -> State:
    operational, degraded = bounds_ppm
    if share_ppm >= operational:
        return "operational"
    return "degraded" if share_ppm >= degraded else "outage"
