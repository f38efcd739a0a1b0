"""Failed tests and their reasons, in a line each: `make test` repeats them at its end.

The runners say it in the middle of long logs; whoever sees only the last lines must know as well.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

REASON_CHARS_MAX = 240  # a reason is a hint of what to look for in the log, not the log
SHOWN_PER_PART_MAX = 4  # more of one part have one cause, as a rule

_LIBTEST_BLOCK = re.compile(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:|\Z)", re.MULTILINE | re.DOTALL)
_LIBTEST_FAILED = re.compile(r"^test result: FAILED\.", re.MULTILINE)
_LIBTEST_TARGETS = re.compile(r"^error: (\d+) targets? failed", re.MULTILINE)
_LIBTEST_PANIC = re.compile(r"panicked at (.+?):\n(.*?)(?:\nnote: |\Z)", re.DOTALL)
_GO_FAIL = re.compile(r"^ *--- FAIL: (\S+).*\n((?:^ +[^-=\s].*\n)*)", re.MULTILINE)
_CHAOS_NOT_CLEAN = re.compile(r"^(\S+) +(seed .+ NOT CLEAN .*)$", re.MULTILINE)


def of_junit(path: Path) -> list[str]:
    """`test: first line of its message`, for each failed case of a JUnit file."""
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (FileNotFoundError, ElementTree.ParseError):
        return []
    return [
        _line(case.get("name", "?"), child.get("message") or child.text or "")
        for case in cases
        for child in case
        if child.tag in ("failure", "error")
    ]


def names_of_libtest(output: str) -> list[str]:
    """Names of all failed tests of `cargo test --no-fail-fast`. None of them where a binary did not get to its end."""
    names = [name for name, _ in _LIBTEST_BLOCK.findall(output)]
    told = _LIBTEST_TARGETS.search(output)
    is_whole = told is not None and int(told[1]) == len(_LIBTEST_FAILED.findall(output))
    return sorted(set(names)) if is_whole else []


def of_output(output: str) -> list[str]:
    """The same from what `cargo test`, `go test -v` or chaos printed."""
    return [_line(name, reason) for name, reason in _in_output(output)]


def _in_output(output: str) -> Iterator[tuple[str, str]]:
    for name, block in _LIBTEST_BLOCK.findall(output):
        panic = _LIBTEST_PANIC.search(block)
        yield name, f"{panic[1]}: {panic[2]}" if panic else block
    yield from _GO_FAIL.findall(output)
    yield from _CHAOS_NOT_CLEAN.findall(output)


def _line(name: str, reason: str) -> str:
    reason = " ".join(reason.split())
    if len(reason) > REASON_CHARS_MAX:
        reason = reason[: REASON_CHARS_MAX - 1] + "…"
    return f"{name}: {reason}" if reason else name
