"""The source of names, and the files generated from it."""

from pathlib import Path

import pytest

from quorate_observe import names
from quorate_observe.cli import generated_files, main
from quorate_observe.metrics import BadMetrics, load, prometheus_name


@pytest.mark.parametrize(
    ("name", "unit", "kind", "expected"),
    [
        ("quorate.appends", "{batch}", "counter", "quorate_appends_total"),
        ("quorate.bytes", "By", "counter", "quorate_bytes_total"),
        ("quorate.commit.duration", "s", "histogram", "quorate_commit_duration_seconds"),
        ("process.memory.usage", "By", "gauge", "process_memory_usage_bytes"),
        ("process.cpu.time", "s", "counter", "process_cpu_time_seconds_total"),
        ("quorate.fleet.promised", "1", "gauge", "quorate_fleet_promised_ratio"),
        ("quorate.lending.granted", "{request}/s", "gauge", "quorate_lending_granted_per_second"),
        ("disk.io", "By/s", "gauge", "disk_io_bytes_per_second"),
        ("some.share", "1", "counter", "some_share_total"),
        ("some-odd.name_total", "{x}", "counter", "some_odd_name_total"),
    ],
)
def test_names_in_prometheus(name: str, unit: str, kind: str, expected: str) -> None:
    """Names by OpenTelemetry's compatibility specification."""
    assert prometheus_name(name, unit, kind) == expected  # type: ignore[arg-type]


def test_what_is_generated_is_fresh() -> None:
    stale = [str(path) for path, text in generated_files().items() if path.read_text() != text]
    assert not stale, "`make gen` writes them: " + ", ".join(stale)


def test_a_stale_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(names, "REFERENCE", tmp_path / "metrics.md")
    monkeypatch.setattr("quorate_observe.cli.REPOSITORY", Path("/"))
    assert main(["gen", "--check"]) == 1
    assert "metrics.md" in capsys.readouterr().out
    assert not (tmp_path / "metrics.md").exists(), "a check changes nothing"


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": '"sum"'},
        {"unit": '"parsec"'},
        {"unit": '"{x}/fortnight"'},
        {"from": "[]"},
        {"from": '["portal"]'},
    ],
)
def test_bad_metrics_are_refused(tmp_path: Path, wrong: dict[str, str]) -> None:
    good = {"constant": '"A"', "name": '"a"', "kind": '"gauge"', "unit": '"s"', "from": '["api"]', "description": '"x"'}
    source = tmp_path / "metrics.toml"
    source.write_text("[[metric]]\n" + "".join(f"{key} = {value}\n" for key, value in good.items()))
    assert load(source)[0].prometheus_name == "a_seconds"
    source.write_text("[[metric]]\n" + "".join(f"{key} = {value}\n" for key, value in {**good, **wrong}.items()))
    with pytest.raises(BadMetrics):
        load(source)


def test_one_name_is_one_metric(tmp_path: Path) -> None:
    one = '[[metric]]\nconstant = "%s"\nname = "a"\nkind = "gauge"\nunit = "s"\nfrom = ["api"]\ndescription = "x"\n'
    source = tmp_path / "metrics.toml"
    source.write_text(one % "A" + one % "B")
    with pytest.raises(BadMetrics, match="name more than once: a"):
        load(source)
