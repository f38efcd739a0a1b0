"""Damage is done in the right places, and choices depend on the seed only."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from quorate_chaos import cli, machine
from quorate_chaos.faults import FAULTS, disks


def data(folder: Path) -> dict[str, bytes]:
    """A server's data folder: a segment with records, an allocated one, a file of a group's log."""
    for name in ("journal", "groups/a-group"):
        (folder / name).mkdir(parents=True)
    (folder / "journal/segment-00000001").write_bytes(bytes(range(1, 251)) * 200 + bytes(4096))
    (folder / "journal/segment-00000002").write_bytes(bytes(65536))
    (folder / "groups/a-group/00000001").write_bytes(bytes(range(1, 251)) * 200)
    (folder / "groups/manifest-a").write_bytes(bytes(range(1, 251)) * 200)
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_bits_flip_in_records_only(tmp_path: Path) -> None:
    before = data(tmp_path)
    said = [disks.flip(tmp_path, random.Random(seed)) for seed in range(4)]
    after = contents(tmp_path)
    changed = {
        f"{name}+{at}"
        for name, old in before.items()
        for at, (a, b) in enumerate(zip(old, after[name], strict=True))
        if a != b
    }
    assert changed
    assert {place.split("+")[0] for place in changed} == {"journal/segment-00000001", "groups/a-group/00000001"}
    assert all(disks.HEAD_BYTES <= int(place.split("+")[1]) < 50_000 for place in changed)
    assert all(any(place in text for text in said) for place in changed)


def test_a_missing_segment_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data(tmp_path)
    gone = tmp_path / "journal" / "segment-00000009"
    monkeypatch.setattr(disks, "_written", lambda _: [(gone, 50_000)])
    assert disks.flip(tmp_path, random.Random(1)) == "a bit flipped at "


def test_the_same_seed_flips_the_same_bits(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        data(tmp_path / name)
        disks.flip(tmp_path / name, random.Random(5))
        found.append(contents(tmp_path / name))
    assert found[0] == found[1]
    assert found[0] != data(tmp_path / "c")


def test_a_table_runs_every_fault_before_any_again() -> None:
    options = cli._options(["--runs", "2", "--seed", "10"])
    plan = cli._plan(options)
    assert plan[: len(FAULTS)] == [(name, 10) for name in FAULTS]
    assert plan[len(FAULTS)] == (next(iter(FAULTS)), 11)
    assert cli._plan(cli._options(["--fault", "isolate"])) == [("isolate", 1)]
    assert all(name in FAULTS for name, _ in cli._plan(cli._options(["--short"])))


def test_runs_stand_beside_one_another_as_many_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)

    def one(fault: str, seed: int, *_: object) -> dict[str, object]:
        both.wait(10)  # breaks unless two run at once
        return {"fault": fault, "seed": seed}

    monkeypatch.setattr(cli, "one", one)
    options = cli._options(["--at-once", "2"])
    plan = [("isolate", 1), ("halves", 1), ("isolate", 2), ("halves", 2)]
    begun: list[tuple[str, int]] = []
    found = [(run["fault"], run["seed"]) for run in cli._tried(plan, options, begun.append)]
    assert sorted(found) == sorted(begun) == sorted(plan)
    assert cli._command(options) == "make chaos RUNS=1 SEED=1 AT_ONCE=2"


def test_impossible_faults_are_left_out_and_reported_or_refused_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(FAULTS, "isolate", replace(FAULTS["isolate"], missing=lambda: "no wires"))
    plan = [("isolate", 1), ("halves", 1), ("isolate", 2)]
    assert cli._left_out(plan, asked_for=False) == {"isolate": "no wires"}
    with pytest.raises(machine.Unfit, match="isolate: no wires"):
        cli._left_out(plan, asked_for=True)
    assert cli._left_out([("halves", 1)], asked_for=True) == {}


def test_nonsense_is_refused() -> None:
    for arguments in (["--runs", "0"], ["--fault", "earthquake"], ["--at-once", "0"], ["--at-once", "17"]):
        with pytest.raises(SystemExit):
            cli._options(arguments)
