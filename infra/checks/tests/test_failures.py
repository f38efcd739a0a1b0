"""Failed tests are named at the end, with the beginning of the reason."""

from pathlib import Path

from quorate_checks import failures

LIBTEST = """
failures:

---- tests::torn stdout ----

thread 'tests::torn' (2711) panicked at crates/storage/journal/src/scan.rs:41:9:
assertion `left == right` failed
  left: 1
 right: 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- tests::plain stdout ----
Error: "no disk"


failures:
    tests::torn
    tests::plain
"""

LIBTEST_END = """
test result: FAILED. 7 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

error: 1 target failed:
    `-p quorate-journal --test scan`
"""

GO = """=== RUN   TestA
--- PASS: TestA (0.00s)
=== RUN   TestB
    b_test.go:12: got 1, want 2
--- FAIL: TestB (0.00s)
    b_test.go:14: and this
FAIL
"""

CHAOS = """kill_head              seed 7      degree 3  clean           900 operations,   1 unknown
full_disk              seed 8      degree 3  NOT CLEAN       900 operations,   1 unknown
2 runs: 1 clean, 1 not; 70 s
"""


def test_a_libtest_failure_says_where_it_panicked() -> None:
    assert failures.of_output(LIBTEST) == [
        "tests::torn: crates/storage/journal/src/scan.rs:41:9: assertion `left == right` failed left: 1 right: 2",
        'tests::plain: Error: "no disk"',
    ]


def test_a_go_failure_is_named() -> None:
    assert failures.of_output(GO) == ["TestB: b_test.go:14: and this"]


def test_a_chaos_run_that_is_not_clean_is_named() -> None:
    assert failures.of_output(CHAOS) == ["full_disk: seed 8 degree 3 NOT CLEAN 900 operations, 1 unknown"]


def test_junit_gives_the_message_and_long_ones_are_cut(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        f'<testsuite><testcase name="a"/><testcase name="b"><failure message="{"x" * 999}">t</failure></testcase>'
        '<testcase name="c"><error>Traceback\n  here</error></testcase></testsuite>'
    )
    cut, short = failures.of_junit(report)
    assert cut.startswith("b: xxx")
    assert len(cut) == len("b: ") + failures.REASON_CHARS_MAX
    assert short == "c: Traceback here"
    assert failures.of_junit(tmp_path / "absent.xml") == []


def test_failed_tests_of_rust_are_known_by_name() -> None:
    assert failures.names_of_libtest(LIBTEST + LIBTEST_END) == ["tests::plain", "tests::torn"]


def test_a_binary_that_crashed_hides_no_failure() -> None:
    crashed = LIBTEST_END.replace("1 target", "2 targets") + "    `-p quorate-journal --lib`\n"
    assert failures.names_of_libtest(LIBTEST + crashed) == []
