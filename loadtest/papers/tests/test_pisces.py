"""The plots of what a claim measured, without the claim."""

import json
from pathlib import Path

from quorate_papers import pisces, plots


def test_shares_are_plotted_over_time_and_latencies_once_rates_have_adapted(tmp_path: Path) -> None:
    def row(at_s: float, ms: float) -> dict[str, object]:
        return {"at_s": at_s, "shares": [1.0, 0.9], "p50_ms": [ms, 2 * ms], "p99_ms": [3 * ms, 4 * ms]}

    for name in pisces.CASES:
        trace = {"pressed": [0.7, 2.4], "rows": [row(2.0, 90.0), row(26.0, 1.0), row(28.0, 2.0), row(30.0, 3.0)]}
        (tmp_path / f"{name}.json").write_text(json.dumps(trace))
    traces = pisces.traces(tmp_path)
    assert traces[1].title == "Keys by Zipf's law"
    assert traces[1].shares == [[1.0] * 4, [0.9] * 4]
    assert traces[1].latencies == [(2.0, 6.0), (4.0, 8.0)]
    plots.tenants(traces, tmp_path / "figure-5")
    plots.tenants_latencies(traces[4], tmp_path / "figure-7")
    for figure in ("figure-5", "figure-7"):
        assert "</svg>" in (tmp_path / f"{figure}.svg").read_text()
