"""The table has the runs' results, and shows every run that was not clean."""

import json
from pathlib import Path
from typing import Any

import pytest

from quorate_chaos import cli, results
from quorate_chaos.faults import FAULTS


def run(fault: str, seed: int = 1, clean: bool = True, lost: tuple[str, ...] = ()) -> dict[str, Any]:
    def group(name: str, gap_ms: int) -> dict[str, Any]:
        counts = {"operations": 600, "entries_acked": 1000, "refused": 5, "unknown": 2}
        return {"group": name, "clean": clean, "longest_gap_ms": gap_ms, "violations": [], **counts}

    found = {"fault": fault, "seed": seed, "degree": 3, "clean": clean, "seconds": 20.0, "healed_s": 1.5}
    groups = [group("memory", 40), group("disk", 900)]
    return {**found, "lost": list(lost), "trouble": [], "events": ["x"], "groups": groups, "text": "y"}


def test_runs_of_a_fault_are_one_row() -> None:
    rows = results.rows([run("isolate"), run("kill_head"), run("kill_head", 2, clean=False)])
    assert [row.fault for row in rows] == ["kill_head", "isolate"], "the table's order"
    row = rows[0]
    assert (row.runs, row.clean, row.operations, row.entries, row.unknown) == (2, 1, 2400, 4000, 8)
    assert (row.gap_memory_ms, row.gap_disk_ms) == (40, 900)


def test_the_table_names_runs_that_were_not_clean_and_their_commands() -> None:
    text = results.markdown([run("kill_head"), run("restart_all", 7, clean=False, lost=("memory",))], {"Day": "today"})
    assert "1 of 2 runs clean." in text
    assert results.repeat("restart_all", 7) in text
    assert "lost in 1" in text
    assert text.count("\n# ") == 0
    assert text.startswith("# ")
    assert "Day: today" in text


def test_the_figure_is_met_only_when_all_runs_are_clean() -> None:
    good, bad = results.figure(2, 2), results.figure(1, 2)
    assert (good.name, good.value, good.goal, good.met) == ("chaos_runs_clean", 2, 2, True)
    assert (bad.value, bad.met) == (1, False)


def test_the_table_names_impossible_faults() -> None:
    text = results.markdown([run("kill_head")], {"Day": "today"}, {"slow_disk": "no cgroup"})
    assert "Not run, since this machine cannot do it: slow_disk (no cgroup)." in text


def test_a_table_is_published_only_when_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path / "build")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    for folder in ("build", "results"):
        (tmp_path / folder).mkdir()
    runs = [run("kill_head"), run("isolate", 3, clean=False)]
    table, lines = results.write(runs, "make chaos", {})
    assert (table.parent.name, len(lines.read_text().splitlines())) == ("build", 2)
    assert not list((tmp_path / "results").iterdir())
    assert results.repeat("isolate", 3) in lines.read_text()
    published, short = results.write(runs, "make chaos", {}, publish=True)
    assert published.parent.name == "results"
    assert published.read_text() == table.read_text()
    whole, shortened = ([json.loads(text) for text in each.read_text().splitlines()] for each in (lines, short))
    for line in whole:
        for group in line["groups"]:
            del group["violations"]  # there are none
    assert shortened == whole, "the verdict is kept, also a bad one"


def test_every_fault_of_the_issue_is_there() -> None:
    wanted = {"kill_head", "kill_middle", "kill_tail", "kill_several", "stop_and_resume", "isolate", "one_way"}
    wanted |= {"full_disk", "wiped_disk", "bits_of_stopped", "bits_of_running", "clock_steps", "coordinator_down"}
    wanted |= {
        "coordinator_and_head",
        "restart_all",
        "combined",
        "slow_disk",
        "slow_link",
        "clock_renewals",
        "clock_at_start",
        "leader_killed",
        "leader_frozen",
        "leader_alone",
        "leader_with_some",
        "coordinator_wiped",
        "coordinators_rolled",
    }
    assert wanted <= set(FAULTS)
    assert all(fault.summary and fault.name == name for name, fault in FAULTS.items())


def test_an_interrupted_table_goes_on_with_all_that_was_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    command = "make chaos RUNS=2 SEED=1"
    assert results.resumed(command, "a") == []
    of_a = [run("kill_head") | {"source": "a"}, run("isolate", clean=False) | {"source": "a"}]
    results.write(of_a, command, {})
    found = results.resumed(command, "a")
    assert [(one["fault"], one["clean"]) for one in found] == [("kill_head", True), ("isolate", False)]
    results.write([*found, run("isolate", 2) | {"source": "b"}], command, {})
    assert len(results.resumed(command, "a")) == 2, "the last one is of changed sources"
    assert results.resumed("make chaos RUNS=1 SEED=1", "a") == []


def test_a_part_of_the_table_is_not_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    for part in (["--fault", "kill_head"], ["--short"], ["--gray"]):
        with pytest.raises(SystemExit):
            cli.main(["--resume", *part])
        assert "leave out --fault, --gray and --short" in capsys.readouterr().err
