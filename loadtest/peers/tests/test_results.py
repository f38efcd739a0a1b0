"""The name under which repetitions share a table."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quorate_peers import results


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "REPOSITORY", tmp_path)
    _git(tmp_path, "init", "--quiet")
    for path in ("services/chain.rs", "loadtest/results/2026-01-01-peers.jsonl", "docs/page.md", "services/README.md"):
        _write(tmp_path, path, "first")
    _commit(tmp_path)
    return tmp_path


def test_pages_and_results_do_not_separate_repetitions(repository: Path) -> None:
    tree, commit = results.measured_tree(), results.measured_commit()
    for path in ("loadtest/results/2026-01-01-peers.jsonl", "docs/page.md", "services/README.md"):
        _write(repository, path, "second")
    assert results.measured_tree() == tree, "not even before they are committed"
    _commit(repository)
    assert results.measured_tree() == tree
    assert results.measured_commit() != commit


def test_code_separates_repetitions(repository: Path) -> None:
    tree = results.measured_tree()
    _write(repository, "services/chain.rs", "other")
    other = results.measured_tree()
    _write(repository, "services/chain.rs", "second")
    assert results.measured_tree().endswith("-dirty")
    assert results.measured_tree() != other, "measurements before this edit are of another tree"
    assert results.measured_commit().endswith("-dirty")
    _commit(repository)
    changed = results.measured_tree()
    assert changed != tree
    assert not changed.endswith("-dirty")


def _write(repository: Path, path: str, text: str) -> None:
    (repository / path).parent.mkdir(parents=True, exist_ok=True)
    (repository / path).write_text(text)


def _commit(repository: Path) -> None:
    _git(repository, "add", "--all")
    _git(repository, "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "a step")


def _git(repository: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repository, check=True)
