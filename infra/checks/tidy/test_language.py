"""Plain sentences in comments and docs: counts of findings only fall."""

from pathlib import Path

import pytest

from quorate_checks.language import count, limits


@pytest.fixture(scope="session")
def tallies(repository: Path) -> count.Tallies:
    return count.judge(repository, count.files(repository, []))[0]


def test_sentences_are_found(tallies: count.Tallies) -> None:
    assert count.total(tallies, count.COMMENTS).sentences > 5_000
    assert count.total(tallies, count.DOCS).sentences > 1_000


def test_sentences_open_with_their_subject_and_are_short(tallies: count.Tallies) -> None:
    found = limits.excesses(tallies, limits.read())
    assert not found, "\n".join([*found, "`quorate-checks language --list PATH…` says where"])


def test_the_table_of_limits_has_no_folder_that_is_gone(tallies: count.Tallies) -> None:
    assert not limits.read().keys() - tallies.keys()
