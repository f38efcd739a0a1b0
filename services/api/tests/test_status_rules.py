"""States of components from what was measured, incidents' timelines, and the feed. No input or output."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest

from quorate_api import limits
from quorate_api.status.feed import NAMESPACE, atom
from quorate_api.status.incidents import Phase, Told, Update
from quorate_api.status.rules import COMPONENTS, Component, DaySum, Sample, State, history, now_of, worst
from quorate_api.telemetry.windows import DAY_S, HOUR_S

NOW = datetime(2026, 11, 25, 12, 30, tzinfo=UTC)
NOW_S = int(NOW.timestamp())
TODAY_S = NOW_S // DAY_S * DAY_S
GOOD: dict[str, Any] = {
    "region": "local", "sampled_at": NOW, "groups": 1_000, "accepting": 1_000, "admits": True, "api_reached": True,
    "usage_until": NOW,
}  # fmt: skip


def states(*, answers: bool = True, **changed: Any) -> tuple[State, ...]:
    """States of api, admission, data plane and usage."""
    found = now_of(Sample(**(GOOD | changed)), NOW, database_answers=answers)
    assert all(found[component].detail.endswith(".") for component in COMPONENTS)
    return tuple(found[component].state for component in COMPONENTS)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ("operational", "operational", "operational", "operational")),
        ({"api_reached": False}, ("degraded", "operational", "operational", "operational")),
        ({"admits": False}, ("operational", "outage", "operational", "operational")),
        ({"accepting": 999}, ("operational", "operational", "operational", "operational")),
        ({"accepting": 998}, ("operational", "operational", "degraded", "operational")),
        ({"accepting": 500}, ("operational", "operational", "degraded", "operational")),
        ({"accepting": 499}, ("operational", "operational", "outage", "operational")),
        ({"groups": 0, "accepting": 0}, ("operational", "operational", "unknown", "unknown")),
        ({"usage_until": None}, ("operational", "operational", "operational", "unknown")),
        ({"usage_until": NOW - timedelta(seconds=181)}, ("operational", "operational", "operational", "degraded")),
        ({"usage_until": NOW - timedelta(seconds=901)}, ("operational", "operational", "operational", "outage")),
        # A clock that is ahead is no fault of usage.
        ({"usage_until": NOW + timedelta(seconds=9)}, ("operational", "operational", "operational", "operational")),
        ({"sampled_at": NOW - timedelta(seconds=180)}, ("operational",) * 4),
        ({"sampled_at": NOW - timedelta(seconds=181)}, ("operational", "unknown", "unknown", "unknown")),
        ({"answers": False}, ("outage", "unknown", "unknown", "unknown")),
    ],
)
def test_states(changed: dict[str, Any], expected: tuple[State, ...]) -> None:
    assert states(**changed) == expected


def test_shares_are_rounded_down_and_name_no_numbers_of_groups() -> None:
    found = now_of(Sample(**(GOOD | {"accepting": 998})), NOW, database_answers=True)
    assert found["data_plane"].detail == "99.8 % of the groups accept appends."


def test_the_worst_state_is_told() -> None:
    assert worst([]) == "unknown"
    assert worst(["operational"]) == "operational"
    assert worst(["operational", "unknown"]) == "unknown"
    assert worst(["unknown", "degraded", "operational"]) == "degraded"
    assert worst(["degraded", "outage", "unknown"]) == "outage"


def day(days_ago: int, minutes: int, good: int, component: Component = "admission", hour: int = 0) -> DaySum:
    day_s = TODAY_S - days_ago * DAY_S
    recent = (minutes, good) if days_ago == 0 else (0, 0)
    return DaySum("local", component, day_s, day_s + hour * HOUR_S, minutes, good, *recent)


def test_a_history_has_each_day_and_unknown_where_nothing_was_measured() -> None:
    whole = 24 * 60
    sums = [day(0, 750, 750), day(1, whole, whole - 2), day(3, whole, whole - 20), day(4, 0, 0), day(95, whole, 0)]
    found = history(sums, "admission", NOW_S, limits.STATUS_DAYS)
    assert len(found.days) == limits.STATUS_DAYS
    assert [one.day_s for one in found.days] == sorted(one.day_s for one in found.days)
    assert [one.state for one in found.days[-5:]] == ["unknown", "outage", "unknown", "degraded", "operational"]
    assert found.days[-2].good_ppm == 998_611, "rounded down"
    assert found.recent_ppm == 1_000_000
    assert found.whole_ppm == (750 + whole * 2 - 22) * 1_000_000 // (750 + 2 * whole), "without the day before them"
    nothing = history([], "usage", NOW_S, limits.STATUS_DAYS)
    assert {one.state for one in nothing.days} == {"unknown"}
    assert (nothing.recent_ppm, nothing.whole_ppm) == (None, None)


def test_a_day_that_was_hardly_measured_is_unknown() -> None:
    """A worker that was away saw no outage, and no good minute either."""
    assert history([day(1, 700, 700), day(2, 1_440, 1_440)], "api", NOW_S, 3).days[1].state == "unknown"
    assert history([day(1, 720, 720), day(2, 1_440, 1_440)], "api", NOW_S, 3).days[1].state == "operational"
    # The first day begins with its first measurement.
    assert history([day(0, 29, 29, hour=12)], "api", NOW_S, 3).days[2].state == "operational"
    # Minutes of groups are judged, also those without telemetry.
    assert history([day(1, 700, 700, "data_plane")], "data_plane", NOW_S, 3).days[1].state == "operational"


def told(*phases: Phase, title: str = "Appends are slow") -> Told:
    """An incident with these phases, oldest first, a minute each."""
    updates = [
        Update(uuid.uuid4(), NOW + timedelta(minutes=minute), phase, "degraded", f"Update {minute}.")
        for minute, phase in enumerate(phases)
    ]
    return Told(uuid.uuid4(), title, ("local",), ("data_plane",), NOW, updates[::-1])


def test_an_incident_is_resolved_since_its_last_opening() -> None:
    assert told("investigating").resolved_at is None
    assert told("investigating", "resolved").resolved_at == NOW + timedelta(minutes=1)
    assert told("investigating", "resolved", "resolved").resolved_at == NOW + timedelta(minutes=1)
    assert told("investigating", "resolved", "monitoring").resolved_at is None
    assert told("identified", "resolved", "monitoring", "resolved").resolved_at == NOW + timedelta(minutes=3)


def test_the_feed_is_well_formed_whatever_operators_write() -> None:
    tricky = "<b>&amp; ]]> \"quotes\" 'and' ümläuts 🔥</b>"
    older, newer = told("investigating", title=tricky), told("investigating", "resolved", title="Gone")
    text = atom([older, newer], "https://quorate.example", NOW)
    feed = ElementTree.fromstring(text)
    names = {"a": NAMESPACE}
    assert feed.tag == f"{{{NAMESPACE}}}feed"
    for required in ("id", "title", "updated"):
        assert all(one.findtext(f"a:{required}", None, names) for one in (feed, *feed.findall("a:entry", names)))
    titles = [entry.findtext("a:title", None, names) for entry in feed.findall("a:entry", names)]
    assert titles == ["Resolved: Gone", f"Investigating: {tricky}"], "the newest update first"
    assert feed.findtext("a:updated", None, names) == newer.latest.at.isoformat()
    entry = feed.findall("a:entry", names)[0]
    assert entry.findtext("a:id", None, names) == newer.id.urn
    assert (entry.findtext("a:content", None, names) or "").startswith("2026-11-25 12:31 UTC, resolved: Update 1.")
    (link,) = entry.findall("a:link", names)
    assert link.get("href") == f"https://quorate.example/status#incident-{newer.id}"
    empty = ElementTree.fromstring(atom([], "https://quorate.example", NOW))
    assert empty.findtext("a:updated", None, names) == NOW.isoformat()
