from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate_harness.figures import Figure
from quorate_harness.quiet import Quiet
from quorate_profile import cli
from quorate_profile.measuring import Measuring

CORES = os.cpu_count() or 1
CALM, BUSY, BUSIER = 0.01 * CORES, 0.1 * CORES, 0.2 * CORES


class Driver:
    """Gives what others used, in this order, and keeps how it was called."""

    def __init__(self, others: list[float]) -> None:
        self.shards = 1
        self.groups = {mode: [Path(f"{mode}-0"), Path(f"{mode}-1")] for mode in ("mem", "sync")}
        self.others: Iterator[float] = iter(others)
        self.calls: list[tuple[str, dict[str, list[Path]], dict[str, str]]] = []

    def drive(self, what: str, groups: dict[str, list[Path]], more: list[str]) -> None:
        flags = dict(zip(more[::2], more[1::2], strict=True))
        self.calls.append((what, groups, flags))
        Path(flags["--json"]).write_text(json.dumps(self._found(what, groups, flags)))

    def _found(self, what: str, groups: dict[str, list[Path]], flags: dict[str, str]) -> list[dict[str, Any]]:
        if what == "profile-mixes":
            numbers = [int(flags["--only"])] if "--only" in flags else range(int(flags["--mixes"]))
            return [{"number": number, "others_cores": next(self.others)} for number in numbers]
        names = {"mem": "in_memory", "sync": "persistent"}
        cells = [(names[mode], int(size)) for mode in groups for size in flags["--sizes"].split(",")]
        return [{"durability": one, "size_bytes": size, "others_cores": next(self.others)} for one, size in cells]


def _measuring(budget_s: float = 60.0) -> Measuring:
    clock = iter(range(1_000))
    quiet = Quiet(3, 1.0, budget_s, now=lambda: float(next(clock)), sleep=lambda _: None)
    return Measuring(1.5, 3, lambda _: None, quiet)


def test_a_cell_that_others_disturbed_is_measured_again_alone(tmp_path: Path) -> None:
    driver, measuring, out = Driver([CALM, CALM, CALM, BUSIER, BUSY, CALM]), _measuring(), tmp_path / "cells.json"
    measuring.cells(driver, 1, 2, out, "64,1024", "--batch-entries-max", "1")
    assert [cell["others_cores"] for cell in json.loads(out.read_text())] == [CALM] * 4
    what, groups, flags = driver.calls[-1]
    assert (what, groups) == ("profile", {"sync": [Path("sync-0")]})
    assert (flags["--sizes"], flags["--repeats"], flags["--batch-entries-max"]) == ("1024", "1", "1")
    assert (len(driver.calls), measuring.again, measuring.disturbed) == (3, 1, 0)


def test_the_least_disturbed_attempt_at_a_mix_counts(tmp_path: Path) -> None:
    driver, measuring, out = Driver([CALM, BUSY, CALM, BUSIER, BUSIER]), _measuring(), tmp_path / "mixes.json"
    measuring.mixes(driver, 2, out)
    assert [mix["number"] for mix in json.loads(out.read_text())] == [0, 1, 2]
    assert json.loads(out.read_text())[1]["others_cores"] == BUSY
    assert [flags.get("--only") for _, _, flags in driver.calls] == [None, "1", "1"]
    assert {flags["--seed"] for _, _, flags in driver.calls} == {"2"}
    assert (measuring.again, measuring.disturbed) == (1, 1)


def test_the_time_for_repeats_is_bounded_in_all(tmp_path: Path) -> None:
    driver, measuring = Driver([BUSY] * 100), _measuring(budget_s=2.0)
    measuring.mixes(driver, 1, tmp_path / "mixes.json")
    measuring.cells(driver, 1, 1, tmp_path / "cells.json", "64")
    assert len(driver.calls) == 2 + 2, "each repeat took a second"
    assert (measuring.again, measuring.disturbed) == (1, 5)


def _error(*ratios: float) -> dict[str, Any]:
    mixes = [
        {"servers": [{"predicted": 0.5, "measured": 0.5 * one}, {"predicted": 1, "measured": 1}]} for one in ratios
    ]
    rest = dict.fromkeys(("median", "worst", "network_median"), 0.1)
    return {
        **rest,
        "understated": max(ratios),
        "storage_understated": 0.4,
        "unbatched_understated": 0.9,
        "reads_understated": 0.9,
        "mixes": mixes,
    }


def test_use_by_others_beside_the_worst_server_is_named() -> None:
    error = _error(1.1, 2.0, 1.3)
    others = cli.others_of_worst(error, [{"others_cores": one} for one in (0.3, 0.02, 0.1)])
    assert others == 0.02
    figures = {figure.name: figure for figure in cli.judged(error, 12, 0.8, others)}
    assert figures["cost_model_understated_ratio"].met is False
    assert "while others used 0.02 cores" in figures["cost_model_understated_ratio"].note


BROKEN = [Figure("cost_model_understated_ratio", 2.153, "ratio", 1.25)]


@pytest.mark.parametrize("was_there", [False, True])
def test_a_profile_that_breaks_promises_takes_nobodys_place(tmp_path: Path, was_there: bool) -> None:
    (tmp_path / "new.json").write_text("new")
    if was_there:
        (tmp_path / "local.json").write_text("old")
    written = cli.write(tmp_path, cli.MISSED, tmp_path / "new.json", {})
    assert written.read_text() == "new"
    assert (tmp_path / "local.json").exists() is was_there
    verdict = cli.verdict(BROKEN, written, is_used=False)
    assert "\n" not in verdict
    assert "is 2.15, and its goal 1.25" in verdict
    assert ("local.json is as it was" in verdict) is was_there
    assert ("goes on with the estimate" in verdict) is not was_there
    cli.write(tmp_path, "local", tmp_path / "new.json", {})
    assert (tmp_path / "local.json").read_text() == "new"
    assert not (tmp_path / "local-missed.json").exists()
    assert not (tmp_path / "local-missed-cells.json").exists()
