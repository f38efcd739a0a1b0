"""How many tests passed and failed, read from what each runner itself reports."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

_LIBTEST_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;", re.MULTILINE)

_GO_TEST_RESULT = re.compile(r"^ *--- (PASS|FAIL|SKIP): ", re.MULTILINE)
_CHAOS_RESULT = re.compile(r"^\d+ runs: (\d+) clean, (\d+) not;", re.MULTILINE)


@dataclass(frozen=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.skipped


def of_junit(path: Path) -> Counts | None:
    """Counts of a JUnit file (pytest, Vitest, Playwright, node:test); None when there is none."""
    try:
        root = ElementTree.parse(path).getroot()
    except (FileNotFoundError, ElementTree.ParseError):
        return None
    passed = failed = skipped = 0
    for case in root.iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed += 1
        elif "skipped" in kinds:
            skipped += 1
        else:
            passed += 1
    return Counts(passed, failed, skipped)


def of_libtest(output: str) -> Counts | None:
    """Counts of `cargo test`, summed over its binaries; None when no binary got to run."""
    results = _LIBTEST_RESULT.findall(output)
    if not results:
        return None
    return Counts(*(sum(int(result[column]) for result in results) for column in range(3)))


def of_go_test(output: str) -> Counts | None:
    """Counts of `go test -v`, subtests included; None when no test got to run."""
    results = _GO_TEST_RESULT.findall(output)
    if not results:
        return None
    return Counts(*(results.count(word) for word in ("PASS", "FAIL", "SKIP")))


def of_chaos(output: str) -> Counts | None:
    """Clean runs count as passed; None when chaos could not run."""
    found = _CHAOS_RESULT.search(output)
    return Counts(int(found[1]), int(found[2])) if found else None


def settle(reported: Counts | None, exit_code: int) -> Counts:
    """The counts of a part. A runner that failed without reporting a failure is one failure. A runner that reports no
    test at all is one, too: a part that tests nothing must not look like success."""
    counts = reported or Counts()
    if counts.failed == 0 and (exit_code != 0 or counts.total == 0):
        return counts + Counts(failed=1)
    return counts
