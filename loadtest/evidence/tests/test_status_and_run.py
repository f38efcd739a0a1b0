"""Published evidence is fresh, old or missing; what is measured anew takes the place of the same day's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from quorate_evidence import run
from quorate_evidence.published import newest
from quorate_evidence.status import statuses, text
from quorate_harness import evidence
from quorate_harness.evidence import Subject
from quorate_local.display import Display


@pytest.fixture
def one_subject(monkeypatch: pytest.MonkeyPatch) -> Subject:
    subject = Subject("model", "make model", (), ("services/verify/model",), "true", False)
    for module in ("quorate_harness.evidence", "quorate_evidence.status"):
        monkeypatch.setattr(f"{module}.subjects", lambda: {"model": subject})
    return subject


def _publish(folder: Path, day: str, **line: object) -> None:
    about = {"name": "states", "command": "make model", "met": True}
    (folder / f"{day}-model.jsonl").write_text(json.dumps({**about, **line}) + "\n")


def test_the_newest_file_of_a_subject_counts(tmp_path: Path, one_subject: Subject) -> None:
    _publish(tmp_path, "2026-01-02", source="b", met=False)
    _publish(tmp_path, "2026-01-01", source="a")
    found = newest(tmp_path)["model"]
    assert (found.day, found.sources, found.missed) == ("2026-01-02", {"b"}, ("states",))


def test_runs_without_a_command_are_told_by_how_they_are_repeated(tmp_path: Path, one_subject: Subject) -> None:
    (tmp_path / "2026-01-01-runs.jsonl").write_text(
        json.dumps({"fault": "cut", "clean": False, "repeat": "make model"})
    )
    found = newest(tmp_path)["model"]
    assert (found.sources, found.missed) == ({None}, ("cut",))


def test_evidence_is_fresh_only_with_the_digest_of_these_sources(tmp_path: Path, one_subject: Subject) -> None:
    assert "nothing is published" in text(statuses(tmp_path))[0]
    _publish(tmp_path, "2026-01-01", source="0123456789abcdef")
    assert "older than the sources" in text(statuses(tmp_path))[0]
    _publish(tmp_path, "2026-01-02", source=one_subject.source())
    lines = text(statuses(tmp_path))
    assert "speaks for these sources" in lines[0]
    assert lines[-1] == "1 of 1 are of these sources."


def _run(
    monkeypatch: pytest.MonkeyPatch, folder: Path, subject: Subject, command: str, exit_code: int
) -> tuple[int, list[dict[str, object]]]:
    """`make evidence` with a command that leaves one figure, and ends with `exit_code`."""
    results, kept = folder / "results", folder / "figures"
    results.mkdir()
    kept.mkdir()
    (kept / "old.jsonl").write_text(json.dumps({"name": "before", "command": "make model"}) + "\n")
    line = json.dumps({"name": "states", "command": command, "source": "$QUORATE_SOURCE"}).replace('"', '\\"')
    script = folder / "measure.sh"
    script.write_text(f'echo "{line}" >> {kept}/new.jsonl; exit {exit_code}\n')
    monkeypatch.setattr(run, "FOLDER", kept)
    monkeypatch.setattr(run, "REPOSITORY", folder)
    monkeypatch.setattr(run, "RESULTS", results)
    measured = Subject(subject.name, subject.command, (), subject.folders, f"sh {script}", False)
    stale = [type(statuses(results)[0])(measured, None, False)]
    code = run.run(stale, Display())
    lines = [json.loads(text) for file in results.glob("*.jsonl") for text in file.read_text().splitlines()]
    return code, lines


def test_what_was_measured_anew_is_published_with_its_source(
    tmp_path: Path, one_subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, lines = _run(monkeypatch, tmp_path, one_subject, "make model", 0)
    assert code == 0
    assert [(line["name"], line["source"]) for line in lines] == [("states", one_subject.source())]


def test_a_run_that_is_not_clean_is_not_published(
    tmp_path: Path, one_subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, lines = _run(monkeypatch, tmp_path, one_subject, "make model", 1)
    assert (code, lines) == (1, [])


def test_an_interrupted_measurement_goes_on_with_its_next_part(
    tmp_path: Path, one_subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = one_subject.source()
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "REPOSITORY", tmp_path)
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results")
    called: list[str] = []

    def call(command: str, source: str) -> int:
        called.append(command)
        line = {"name": "states", "value": 3.0, "goal": 5.0, "met": False, "command": command, "source": source}
        with (tmp_path / "model.jsonl").open("a") as kept:
            kept.write(json.dumps(line) + "\n")
        return int(command == "make model PART=2" and called.count(command) == 1)

    monkeypatch.setattr(run, "_call", call)
    parts = ("make model PART=1", "make model PART=2")
    subject = Subject("model", "make model", (), one_subject.folders, "make model ALL=1", False, parts)
    stale = [type(statuses(tmp_path)[0])(subject, None, False)]
    assert run.run(stale, Display()) == 1
    parts_folder = tmp_path / "results" / "parts"
    assert [file.name for file in parts_folder.iterdir()] == ["model-01.jsonl"], "another machine can go on with it"
    assert run.run(stale, Display()) == 0
    assert not list(parts_folder.iterdir())
    assert called == [*parts, "make model PART=2"]
    (file,) = (tmp_path / "results").glob("*.jsonl")
    (line,) = (json.loads(text) for text in file.read_text().splitlines())
    assert (line["value"], line["met"], line["command"], line["source"]) == (6.0, True, "make model ALL=1", source)
    assert run.run(stale, Display(), anew=True) == 0
    assert called[3:] == [*parts]


def test_the_parts_of_the_simulator_are_the_seeds_of_its_run() -> None:
    simulator = evidence.subjects()["simulator"]
    numbers = [[int(number) for number in re.findall(r"\d+", part)] for part in simulator.parts]
    seeds = [seed for count, first in numbers for seed in (first, first + count)]
    assert seeds[1:-1:2] == seeds[2::2], "each part begins behind the one before"
    assert simulator.run == f"make sim SEEDS={seeds[-1] - seeds[0]} FIRST={seeds[0]}"


def test_a_run_that_left_no_figures_is_an_error(one_subject: Subject) -> None:
    with pytest.raises(ValueError, match="left no figures"):
        run.publish(one_subject, [])


def test_every_subject_can_be_measured_by_a_make_command() -> None:
    for subject in evidence.subjects().values():
        commands = [subject.run, *subject.parts] if subject.run else subject.parts
        assert all(command.startswith(subject.command) for command in commands)
