"""The comparison of what clients saw with what was judged."""

from __future__ import annotations

import pytest

from quorate_sla import blind
from quorate_sla.blind import Row

MINUTE_S = 1_795_824_000


def row(seen_ms: float, *judged: str) -> Row:
    return Row("head killed", "in_memory", MINUTE_S, seen_ms, judged)


def test_spans_are_divided_among_their_minutes() -> None:
    begin_ms = MINUTE_S * 1_000.0
    found = blind.by_minute([[begin_ms + 59_000, begin_ms + 122_000], [begin_ms + 1_000, begin_ms + 1_500]])
    assert found == pytest.approx({MINUTE_S: 1_500, MINUTE_S + 60: 60_000, MINUTE_S + 120: 2_000})


def test_each_difference_is_a_figure() -> None:
    rows = [row(400.0, "availability"), row(400.0, "latency"), row(0.0, "availability"), row(100.0), row(9_000.0)]
    rows.append(row(200.0, "availability"))  # too short for the client to be sure
    figures = {figure.name: figure for figure in blind.figures(rows, ("head killed",))}
    assert (figures["sla_blind_minutes"].value, figures["sla_blind_minutes"].met) == (2, False)
    assert (figures["sla_unseen_bad_minutes"].value, figures["sla_unseen_bad_minutes"].met) == (1, False)
    assert figures["sla_seen_minutes"].value == 3
    assert all(
        figure.met for figure in blind.figures([row(300.0, "availability"), row(0.0, "latency")], ("head killed",))
    )
