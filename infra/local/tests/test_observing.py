"""Prometheus beside the stack: its source, its configuration, its stop."""

import json
from pathlib import Path

import pytest

from quorate_local import components, observing
from quorate_local.layout import Layout
from quorate_local.options import BadOptions


def test_without_prometheus_its_source_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(observing, "UNPACKED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadOptions, match="fetches it, or names the package to install"):
        observing.tool("promtool")
    (tmp_path / "promtool").touch(mode=0o755)
    assert observing.tool("promtool") == str(tmp_path / "promtool")


def test_prometheus_scrapes_the_bridge_and_loads_every_alert(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(observing, "tool", lambda name: name)
    layout = Layout(tmp_path)
    layout.observe.mkdir()
    spec = observing.prometheus(layout, "127.0.0.1:7", "127.0.0.1:9")
    assert "--web.listen-address=127.0.0.1:9" in spec.command, "on loopback only"
    config = json.loads((layout.observe / "prometheus.json").read_text())
    (scrape,) = config["scrape_configs"]
    assert scrape["job_name"] == "quorate-collector"
    assert scrape["honor_labels"] is True
    assert scrape["static_configs"] == [{"targets": ["127.0.0.1:7"]}]
    (rules,) = map(Path, config["rule_files"])
    assert len(list(rules.parent.glob(rules.name))) >= 4


def test_every_phase_is_stopped_once() -> None:
    phases = [value for name, value in vars(components).items() if name.startswith("PHASE_")]
    assert sorted(components.STOP_ORDER) == sorted(phases)
