"""The plot of a project's guarantee, without the claim."""

import json
from pathlib import Path

from quorate_papers import guaranteed, plots


def test_rates_are_those_of_a_short_time_and_stand_beside_what_is_promised(tmp_path: Path) -> None:
    acked = [[(0.1 * n, 10 * n) for n in range(20)], [(0.1 * n, 20 * n) for n in range(10, 20)]]
    promised = [(0.0, (100, 0)), (1.0, (100, 200)), (2.0, (0, 0))]
    (tmp_path / "rounds.json").write_text(json.dumps([{"acked": acked, "promised": promised}] * 9))
    trace = guaranteed.trace(tmp_path)
    assert len(trace.promised[0]) == 3 * guaranteed.SHOWN
    assert trace.promised[1][:3] == [(0.0, 0), (1.0, 200), (2.0, 0)]
    for rates, expected in zip(trace.rates, (100.0, 200.0), strict=True):
        assert {round(rate, 6) for _, rate in rates} == {0.0, expected}
        assert (rates[0][1], rates[-1][1]) == (0.0, 0.0), "it began and ended"
    plots.guaranteed(trace, tmp_path / "figure-12")
    assert "</svg>" in (tmp_path / "figure-12.svg").read_text()
