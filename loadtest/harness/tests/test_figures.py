"""Figures are kept as lines that programs read, and shown as tables that people read."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

from quorate_harness.figures import Figure, keep, markdown, rewrite, table
from quorate_local.options import REPOSITORY

RESULTS = REPOSITORY / "loadtest" / "results"
FORMAT = jsonschema_rs.validator_for(json.loads((RESULTS / "figure.schema.json").read_text()))
OF_RUNS = "chaos"  # a line is a run, not a figure
PUBLISHED = sorted(path for path in RESULTS.glob("*.jsonl") if OF_RUNS not in path.stem)


def _lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_figures_are_judged_and_kept(tmp_path: Path) -> None:
    figures = [
        Figure("gap_ms", 700.1234, "ms", 1_000, note="thirty kills"),
        Figure("ratio", 0.9, "ratio", 0.95, more_is_better=True),
        Figure("told_s", 3, "s"),
    ]
    keep(figures, "make claims", tmp_path / "deep" / "consensus.jsonl")
    lines = _lines(tmp_path / "deep" / "consensus.jsonl")
    assert [line["met"] for line in lines] == [True, False, None]
    assert (lines[0]["value"], lines[0]["command"]) == (700.123, "make claims")
    assert table(figures)[1].endswith("MISSED")
    assert "≥ 0.95" in table(figures)[1]
    assert markdown(figures)[2] == "| `gap_ms` | 700 | ms | ≤ 1,000 | met | thirty kills |"


def test_lines_have_the_form_that_all_languages_share(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    keep([Figure("plain_s", 3, "s"), Figure("disturbed_ms", 0.5, "ms", 1, others_share=0.123456)], "make bench", file)
    plain, disturbed = _lines(file)
    for line in (plain, disturbed):
        FORMAT.validate(line)
    assert "others_share" not in plain
    assert disturbed["others_share"] == 0.1235
    assert not FORMAT.is_valid({**plain, "name": "two words"})
    assert not FORMAT.is_valid({**plain, "note": "of the writer's own"})


def test_what_is_published_again_takes_the_place_of_what_was(tmp_path: Path) -> None:
    file = tmp_path / "day.jsonl"
    for value in (1, 2):
        rewrite([Figure("told_s", value, "s")], "make claims", file, measured_at="abc1234")
    assert [(line["value"], line["commit"]) for line in _lines(file)] == [(2, "abc1234")]


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.name)
def test_published_figures_have_it_too(file: Path) -> None:
    lines = _lines(file)
    assert lines
    for line in lines:
        FORMAT.validate(line)
