"""The totals of `make test` come from the runners, and a silent failure is still a failure."""

from pathlib import Path

from quorate_checks.counts import Counts, of_chaos, of_go_test, of_junit, of_libtest, settle

JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase name="a"/><testcase name="b"><failure message="no"/></testcase>
<testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase></testsuite></testsuites>"""

LIBTEST = """
running 3 tests
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
running 2 tests
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
"""


def test_junit_is_counted_case_by_case(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(JUNIT)
    assert of_junit(tmp_path / "report.xml") == Counts(passed=1, failed=2, skipped=1)


def test_no_report_and_half_a_report_are_no_counts(tmp_path: Path) -> None:
    assert of_junit(tmp_path / "absent.xml") is None
    (tmp_path / "half.xml").write_text("<testsuites><testcase")
    assert of_junit(tmp_path / "half.xml") is None


def test_libtest_is_summed_over_binaries() -> None:
    assert of_libtest(LIBTEST) == Counts(passed=4, failed=1, skipped=1)
    assert of_libtest("error: could not compile") is None


def test_a_runner_that_fails_without_a_report_is_one_failure() -> None:
    assert settle(None, 101) == Counts(failed=1)
    assert settle(Counts(passed=7), 1) == Counts(passed=7, failed=1)


def test_a_runner_that_reports_no_test_is_one_failure() -> None:
    assert settle(Counts(), 0) == Counts(failed=1)
    assert settle(None, 0) == Counts(failed=1)


def test_reported_failures_are_not_counted_twice() -> None:
    assert settle(Counts(passed=1, failed=2), 1) == Counts(passed=1, failed=2)


def test_go_tests_are_counted_with_their_subtests() -> None:
    output = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- FAIL: TestB/x (0.00s)\n--- SKIP: TestC (0.00s)\nFAIL\n"
    assert of_go_test(output) == Counts(passed=1, failed=1, skipped=1)
    assert of_go_test("check_test.go:3:1: expected declaration") is None


def test_chaos_counts_its_clean_runs() -> None:
    assert of_chaos("   1  kill_head clean\n3 runs: 2 clean, 1 not; 70 s\n") == Counts(passed=2, failed=1)
    assert of_chaos("Chaos cannot run here.") is None
