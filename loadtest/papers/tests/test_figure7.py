"""Counts over a run of Figure 7, and medians over several runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorate_harness.figures import Figure
from quorate_papers import figure7, goals, profiles, program, runs, seen


def _sampled(tenant: str, phase: str, rates: list[float]) -> list[seen.Sample]:
    """Windows of 100 ms."""
    return [seen.Sample(tenant, phase, n / 10, (n + 1) / 10, rate, 5_000) for n, rate in enumerate(rates)]


SLA = seen.Seen().sla_per_s
LIMITED = (seen.FLOODED, seen.PACED)
PHASES = ("both at their SLA, limiters off", "B floods, limiters off", *LIMITED, seen.CONTROL)
SHARED = ("C idles, B wants more", "C idles, A and B want more", "C is back, 1")


def _run(c: list[float] | None = None, **changed: Any) -> seen.Seen:
    """A and B have twice their SLA in each phase, and C the parts of its own that are given, window by window."""
    samples = []
    for phase in (*PHASES, *SHARED):
        for tenant in "AB":
            samples += _sampled(tenant, phase, [2 * SLA] * 10)
        samples += _sampled("C", phase, [part * SLA for part in c or [1.0] * 10])
    returns = [seen.Return(0.1, 0.1, 0.6)]
    profile = profiles.read(profiles.DEFAULT).about()
    run = seen.Seen(samples, returns, profile=profile, cpu_s_per_m=dict.fromkeys(LIMITED, 8.0))
    return replace(run, **changed)


def test_an_interval_below_the_sla_is_a_violation() -> None:
    sla = seen.Seen().sla_per_s
    samples = _sampled("B", "C idles, A and B want more", [sla] * 5 + [0.5 * sla] * 5 + [1.5 * sla] * 5)
    samples += _sampled("C", "C idles, A and B want more", [0.1 * sla] * 10)
    assert seen.violations(seen.Seen(samples)) == (1, 5)
    assert seen.violations(seen.Seen(samples), "B floods") == (0, 0)


def test_intervals_short_between_returns_are_published_and_decide_nothing() -> None:
    fine, short = [SLA] * 10, [0.5 * SLA] * 10
    samples = _sampled("B", seen.FLOODED, fine) + _sampled("A", f"{seen.CALM}, 1", short)
    calm = _sampled("B", f"{seen.CALM}, 1", [0.9 * SLA] * 10)
    run = seen.Seen(samples + calm)
    assert seen.control(run) == (0, 2)
    assert not runs.Attempt(1, run, counts=True).is_disturbed
    assert seen.calm(run) == (2, 4), "who asks for less than its SLA may have less"
    assert seen.violations(seen.Seen(samples + calm)) == (0, 0)


def test_a_victim_is_back_when_an_interval_begins_at_its_sla() -> None:
    sla = 2_000.0
    assert seen.back_s(_sampled("C", "x", [0.2 * sla, 0.2 * sla, *[sla] * 6]), sla, 4.0) == pytest.approx(0.2)
    assert seen.back_s(_sampled("C", "x", [0.2 * sla] * 8), sla, 4.0) > seen.INTERVAL_S


def test_pacing_is_measured_beside_a_client_without_it() -> None:
    flooded, paced = seen.FLOODED, seen.PACED
    samples = [one for tenant in "BC" for phase in (flooded, paced) for one in _sampled(tenant, phase, [2_000.0] * 5)]
    run = seen.Seen(samples, cpu_s_per_m={flooded: 8.0, paced: 6.0})
    values = {figure.name: figure.value for figure in goals._pacing(run)}
    assert values["fig7_pacing_cpu_ratio"] == pytest.approx(0.75)
    assert values["fig7_pacing_victim_p99_ratio"] == values["fig7_pacing_rate_ratio"] == pytest.approx(1.0)
    assert {figure.name: figure.met for figure in goals._pacing(run)}["fig7_pacing_rate_ratio"] is True
    samples = [replace(one, acked_per_s=1_700.0) if (one.tenant, one.phase) == ("B", paced) else one for one in samples]
    slower = {figure.name: figure.met for figure in goals._pacing(replace(run, samples=samples))}
    assert slower["fig7_pacing_rate_ratio"] is False
    with pytest.raises(KeyError):
        list(goals._pacing(seen.Seen()))


def test_processor_time_is_that_of_the_process_whatever_its_name_is() -> None:
    stat = "7 (a) b) S 1 7 7 0 -1 4194560 500 0 0 0 120 34 5 6 20 0 1 0 9 9 9 9"
    assert figure7.cpu_ticks(stat) == 154
    own = Path("/proc/self/stat")
    assert figure7.cpu_ticks(own.read_text()) <= figure7.cpu_ticks(own.read_text())


def test_without_harm_there_is_nothing_to_protect_from() -> None:
    def met(victim: float) -> dict[str, bool | None]:
        return {figure.name: figure.met for figure in goals.sharing(_run([victim] * 10))}

    assert met(0.3)["fig7_unprotected_rate_ratio"] is True
    assert met(0.3)["fig7_control_rate_ratio"] is True
    assert met(0.99)["fig7_unprotected_rate_ratio"] is False
    assert met(0.99)["fig7_control_rate_ratio"] is False


def test_tenants_that_ever_fell_short_are_counted_once() -> None:
    samples = _sampled("B", SHARED[1], [0.5 * SLA] * 10) + _sampled("A", SHARED[1], [SLA] * 10)
    assert seen.short_tenants(seen.Seen(samples)) == (1, 2)
    assert seen.short_tenants(seen.Seen(_sampled("B", seen.FLOODED, [0.0] * 10))) == (0, 0)


def test_a_return_counts_when_its_owner_left_burst_capacity() -> None:
    late, soon = seen.INTERVAL_S + 0.01, 0.1
    returns = [seen.Return(late, soon, 0.6), seen.Return(soon, late, 0.6), seen.Return(late, soon, 0.05)]
    assert seen.short_returns(seen.Seen(returns=returns)) == (1, 2)
    assert seen.short_returns(seen.Seen()).ratio == 1.0, "of nothing nothing is known"
    samples = _sampled("A", "C idles", [SLA] * 5 + [1.5 * SLA] * 5) + _sampled("B", "C idles", [0.5 * SLA] * 10)
    assert seen.burst_part(seen.Seen(samples)) == pytest.approx(0.5), "of the last interval; B lacks, and gives nothing"
    assert seen.burst_part(seen.Seen()) == 0.0


def test_a_figure_of_several_runs_is_the_median_with_its_ends() -> None:
    by_run = [[Figure("a", value, "ms", 200), Figure("b", 1, "ratio")] for value in (90.0, 700.0, 150.0)]
    spread, plain = runs.aggregate(by_run)
    assert (spread.figure.value, spread.values, spread.met) == (150.0, (90.0, 700.0, 150.0), 2)
    assert (spread.document()["least"], spread.document()["greatest"], spread.document()["met"]) == (90.0, 700.0, True)
    assert "| `a` | 150 | 90 | 700 | ms | ≤ 200 | met (2 of 3 runs met it) |  |" in runs.table([spread])
    assert plain.document()["met"] is None
    assert runs.aggregate(by_run[:2])[0].figure.value == 395.0
    with pytest.raises(AssertionError, match="different figures"):
        runs.aggregate([[Figure("a", 1, "ms")], [Figure("b", 1, "ms")]])
    with pytest.raises(ValueError, match="shorter"):
        runs.aggregate([by_run[0], by_run[1][:1]])


QUIET, DISTURBED = _run(), _run([0.5] * 5 + [1.0] * 5)


def _measured(count: int, *given: seen.Seen) -> tuple[list[runs.Attempt], list[str]]:
    following, said = iter(given), list[str]()
    made = runs.measure(count, lambda: next(following), said.append)
    assert next(following, None) is None, "no run more than needed"
    return made, said


def test_a_disturbed_run_is_repeated_and_published() -> None:
    made, said = _measured(2, QUIET, DISTURBED, QUIET)
    assert [(one.number, one.is_disturbed, one.counts) for one in made] == [
        (1, False, True),
        (2, True, False),
        (2, False, True),
    ]
    assert sum("disturbed, does not count" in line for line in said) == 1
    assert "run 2 of 2, repeated (1 of 2 at most)" in said
    assert runs.disturbed(made) == "1 of 3 runs were disturbed and repeated."
    assert runs.disturbed(made[:1]) == "No run was disturbed."
    assert [len(one.document()["samples"]) > 0 for one in made] == [True, False, True]
    ratio = next(one for one in runs.spreads(made) if one.figure.name == "fig7_control_violation_ratio")
    assert ratio.values == (0.0, 0.0)
    assert ratio.figure.note.startswith("0 of 6, 0 of 6 intervals of tenants")


def test_a_run_that_stays_disturbed_counts_and_the_page_says_so() -> None:
    made, said = _measured(1, DISTURBED, DISTURBED, DISTURBED)
    assert [one.counts for one in made] == [False, False, True]
    assert "**1 that count were disturbed, too.**" in runs.disturbed(made)
    assert "| disturbed, as its 2 repeats before: counts |" in runs.rows(made)
    assert "disturbed, and counts" in said[-1]


def test_runs_are_published_as_a_page_and_data(tmp_path: Path) -> None:
    made, _ = _measured(2, QUIET, DISTURBED, _run(peak_per_s=9_000.0))
    figures = program.publish_runs(made, tmp_path, tmp_path / "data")
    page = (tmp_path / "figure-7.md").read_text()
    assert page.count("\n| 2 | ") == 2, "both attempts of the second run are published"
    assert "| figure | median | least | greatest |" in page
    assert "less than 90% of the part of its SLA" in " ".join(page.split()), "lines of prose may end anywhere"
    assert "cost profile `2026-11-provisional-1`, **an estimate**." in page
    data = json.loads((tmp_path / "data" / "figure-7.json").read_text())
    assert [(one["run"], one["counts"]) for one in data["runs"]] == [(1, True), (2, False), (2, True)]
    assert {one["name"] for one in data["figures"]} == {figure.name for figure in figures}
    first = dict(zip(data["runs"][0]["columns"], data["runs"][0]["samples"][0], strict=True))
    assert data["runs"][0]["phases"][first["phase"]] == PHASES[0]
    assert data["runs"][2]["peak_per_s"] == 9_000
    assert (tmp_path / "figure-7.svg").stat().st_size > 0


def test_the_number_of_runs_is_bounded() -> None:
    for text in ("0", str(program.RUNS_MAX + 1)):
        with pytest.raises(SystemExit):
            program.main(["--only", "fig7", "--runs", text])


def test_figures_go_to_the_results_only_when_the_project_publishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, folder in (("FOLDER", "kept"), ("PUBLISHED", "pages"), ("RESULTS", "results")):
        monkeypatch.setattr(program, name, tmp_path / folder)
    monkeypatch.setattr(program, "named_commit", lambda: "abc1234")
    (tmp_path / "results").mkdir()
    program.keep_figures([Figure("a", 1, "ms")], "filo", "make figures", tmp_path / "elsewhere")
    assert not list((tmp_path / "results").iterdir())
    program.keep_figures([Figure("a", 2, "ms")], "filo", "make figures", tmp_path / "pages")
    [published] = (tmp_path / "results").glob("*-filo.jsonl")
    assert json.loads(published.read_text())["value"] == 2
    assert len((tmp_path / "kept" / "filo.jsonl").read_text().splitlines()) == 2
