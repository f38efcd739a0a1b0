"""The plot of what a claim measured, without the claim."""

import json
from pathlib import Path

from quorate_papers import capacity, plots


def test_estimates_are_plotted_beside_what_was_served(tmp_path: Path) -> None:
    for name in capacity.RESOURCES:
        trace = {"estimates": [[0.0, 9.0], [1.0, 1.1], [2.0, 1.0]], "served": [[1.0, 1.0], [2.0, 1.02]]}
        (tmp_path / f"{name}.json").write_text(json.dumps(trace))
    traces = capacity.traces(tmp_path)
    assert [trace.title for trace in traces] == ["Processor, cores", "Disk, operations/s"]
    plots.capacity(traces, tmp_path / "figure-14")
    assert "</svg>" in (tmp_path / "figure-14.svg").read_text()
