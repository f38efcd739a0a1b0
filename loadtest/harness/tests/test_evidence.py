"""A figure's line names the sources that it speaks for; their digest changes with them and with nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from quorate_harness.evidence import AT_START, Subject, _package_folders, source_of, subject_of, subjects
from quorate_harness.figures import Figure, keep
from quorate_local.options import REPOSITORY


def _subject(*folders: str) -> Subject:
    return Subject("ours", "make ours", (), folders, None, False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "rule.rs").write_text("// Why.\nfn rule() {}\n")
    (tmp_path / "other.rs").write_text("fn other() {}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/rule.rs", "// Another why.\n\n  fn rule() {}\n"),
        ("src/tests.rs", "fn test() {}\n"),
        ("src/rule_tests.rs", "fn test() {}\n"),
        ("src/page.md", "# A page\n"),
        ("other.rs", "fn changed() {}\n"),
    ],
)
def test_comments_tests_and_other_folders_leave_the_digest(checkout: Path, name: str, text: str) -> None:
    before = _subject("src").source(checkout)
    (checkout / name).write_text(text)
    assert _subject("src").source(checkout) == before


@pytest.mark.parametrize(("name", "text"), [("src/rule.rs", "fn rule() { 1 }\n"), ("src/new.rs", "fn new() {}\n")])
def test_code_changes_the_digest(checkout: Path, name: str, text: str) -> None:
    before = _subject("src").source(checkout)
    (checkout / name).write_text(text)
    assert _subject("src").source(checkout) != before


def test_the_simulator_speaks_for_all_crates_that_it_links() -> None:
    folders = _package_folders(subjects()["simulator"].packages, REPOSITORY)
    assert {"services/verify/sim/src", "services/crates/group/src", "services/crates/coordinator-core/src"} <= set(
        folders
    )
    assert not {"services/planner/src", "services/replica/src"} & set(folders)


def test_every_folder_of_every_subject_is_there() -> None:
    missing = [folder for one in subjects().values() for folder in one.folders if not (REPOSITORY / folder).is_dir()]
    assert not missing


def test_a_command_belongs_to_the_subject_that_names_most_of_it() -> None:
    found = {
        command: subject.name if (subject := subject_of(command)) else None
        for command in (
            "make bench",
            "make bench ONLY=groups",
            "make bench-peers ROUNDS=3",
            "make sim SEEDS=5",
            "make up",
        )
    }
    assert list(found.values()) == ["bench", "bench", "peers", "simulator", None]


def test_kept_figures_name_their_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(AT_START, raising=False)
    file = tmp_path / "kept.jsonl"
    keep([Figure("one_s", 1, "s")], "make model", file)
    monkeypatch.setenv(AT_START, "0123456789abcdef")
    keep([Figure("one_s", 1, "s")], "make model", file)
    keep([Figure("one_s", 1, "s")], "make something-else", file)
    here, at_start, none = (json.loads(line).get("source") for line in file.read_text().splitlines())
    monkeypatch.delenv(AT_START)
    assert here == source_of("make model")
    assert (at_start, none) == ("0123456789abcdef", None)
