"""Damage is done where it was meant to be done, and choices follow from the seed."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from quorate_chaos import cli, machine
from quorate_chaos.faults import FAULTS, disks


def journal(folder: Path) -> dict[str, bytes]:
    (folder / "segment-00000001").write_bytes(bytes(range(1, 251)) * 200 + bytes(4096))
    (folder / "segment-00000002").write_bytes(bytes(65536))
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_bits_flip_in_what_was_written_only(tmp_path: Path) -> None:
    before = journal(tmp_path)
    told = disks.flip(tmp_path, random.Random(1))
    after = contents(tmp_path)
    assert after["segment-00000002"] == before["segment-00000002"], "allocated only"
    old, new = before["segment-00000001"], after["segment-00000001"]
    changed = [at for at, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    assert 1 <= len(changed) <= disks.FLIPS
    assert all(disks.SEGMENT_HEAD_BYTES <= at < 50_000 for at in changed)
    assert all((old[at] ^ new[at]).bit_count() == 1 for at in changed)
    assert all(f"+{at}" in told for at in changed)


def test_the_same_seed_flips_the_same_bits(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        journal(tmp_path / name)
        disks.flip(tmp_path / name, random.Random(5))
        found.append(contents(tmp_path / name))
    assert found[0] == found[1]


def test_a_table_runs_every_fault_before_any_again() -> None:
    options = cli._options(["--runs", "2", "--seed", "10"])
    plan = cli._plan(options)
    assert plan[: len(FAULTS)] == [(name, 10) for name in FAULTS]
    assert plan[len(FAULTS)] == (next(iter(FAULTS)), 11)
    assert cli._plan(cli._options(["--fault", "isolate"])) == [("isolate", 1)]
    assert all(name in FAULTS for name, _ in cli._plan(cli._options(["--short"])))


def test_what_the_machine_cannot_do_is_left_out_and_told_or_refused_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(FAULTS, "isolate", replace(FAULTS["isolate"], missing=lambda: "no wires"))
    plan = [("isolate", 1), ("halves", 1), ("isolate", 2)]
    assert cli._left_out(plan, asked_for=False) == {"isolate": "no wires"}
    with pytest.raises(machine.Unfit, match="isolate: no wires"):
        cli._left_out(plan, asked_for=True)
    assert cli._left_out([("halves", 1)], asked_for=True) == {}


def test_nonsense_is_refused() -> None:
    for arguments in (["--runs", "0"], ["--fault", "earthquake"]):
        with pytest.raises(SystemExit):
            cli._options(arguments)
