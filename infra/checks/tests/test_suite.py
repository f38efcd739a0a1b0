"""A part that fails runs once more; what fails twice has failed, and what does not is named all the same."""

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from quorate_checks import parts, suite, verify
from quorate_checks.commands import Command
from quorate_checks.counts import Counts, of_libtest
from quorate_checks.parts import Lane, Part
from quorate_local.display import Display

PASSES = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured"
FAILS = (
    "---- t::a stdout ----\\nError: no\\n\\nfailures:\\n    t::a\\n\\n"
    "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured"
)


def part(code: str) -> Part:
    return Part("sample", "unit", Command([sys.executable, "-c", code]), lambda finished: of_libtest(finished.output()))


def outcome(code: str, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, list[str]]:
    monkeypatch.setattr(suite, "PARTS", [part(code)])
    monkeypatch.setattr(verify, "verify", lambda *_arguments: Counts())
    stream = io.StringIO()
    good = suite.test(Display(stream), None)
    return good, stream.getvalue().splitlines()


@pytest.fixture(autouse=True)
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "REPORTS", tmp_path)
    monkeypatch.setattr(suite, "REPOSITORY", tmp_path)


def test_what_fails_twice_has_failed_and_is_named_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    good, lines = outcome(f"print('{FAILS}'); raise SystemExit(101)", monkeypatch)
    assert not good
    assert lines[-4:] == ["What failed", "  sample: t::a: Error: no", "", "1 passed, 1 failed"]


def test_what_passes_when_it_runs_again_counts_once_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    code = (
        f"import pathlib; seen = pathlib.Path({str(seen)!r}); again = seen.exists(); seen.touch()\n"
        f"print('{PASSES}' if again else '{FAILS}'); raise SystemExit(0 if again else 101)"
    )
    good, lines = outcome(code, monkeypatch)
    assert good
    assert lines[-1] == "2 passed, 0 failed"
    assert lines[-4:-2] == ["What passed only when it ran again: look into it", "  sample: t::a: Error: no"]


def test_of_two_that_fail_the_one_that_passes_then_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    block = "---- t::{name} stdout ----\\nError: no\\n\\n"
    both = (
        block.format(name="a")
        + block.format(name="b")
        + "failures:\\n\\ntest result: FAILED. 1 passed; 2 failed; 0 ignored"
    )
    one = block.format(name="b") + "failures:\\n\\ntest result: FAILED. 1 passed; 1 failed; 0 ignored"
    code = f"import sys; print('{one};' if 'b' in sys.argv else '{both};'); raise SystemExit(101)"
    monkeypatch.setattr(suite, "PARTS", [replace(part(code), only_failed=lambda _finished: ["a", "b"])])
    monkeypatch.setattr(verify, "verify", lambda *_arguments: Counts())
    stream = io.StringIO()
    assert not suite.test(Display(stream), None)
    lines = stream.getvalue().splitlines()
    assert lines[lines.index("What failed") + 1] == "  sample: t::b: Error: no"
    assert lines[lines.index("What passed only when it ran again: look into it") + 1] == "  sample: t::a: Error: no"
    assert lines[-1] == "2 passed, 1 failed"


@pytest.mark.parametrize(("again", "last"), [(1, "2 passed, 0 failed"), (0, "1 passed, 1 failed")])
def test_the_second_run_is_of_the_failed_tests_alone(again: int, last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed test that does not run the second time has still failed."""
    only = f"test result: ok. {again} passed; 0 failed; 5 ignored; 0 measured"
    code = f"import sys; print('{only}' if 'a' in sys.argv else '{FAILS}'); raise SystemExit('a' not in sys.argv)"
    monkeypatch.setattr(suite, "PARTS", [replace(part(code), only_failed=lambda _finished: ["a"])])
    monkeypatch.setattr(verify, "verify", lambda *_arguments: Counts())
    stream = io.StringIO()
    assert suite.test(Display(stream), None) == bool(again)
    assert stream.getvalue().splitlines()[-1] == last


def test_pytest_runs_failed_tests_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '-q'\n")
    (tmp_path / "test_sample.py").write_text(
        "from pathlib import Path\n"
        "def test_steady():\n    with open('ran', 'a') as ran: ran.write('steady ')\n"
        "def test_late():\n    with open('ran', 'a') as ran: ran.write('late ')\n"
        "    assert 'late late' in Path('ran').read_text()\n"
    )
    monkeypatch.setattr(parts, "REPORTS", tmp_path)
    monkeypatch.setattr(suite, "PARTS", [parts.pytest("sample", "unit", str(tmp_path))])
    stream = io.StringIO()
    assert suite.test(Display(stream), "sample")
    assert (tmp_path / "ran").read_text() == "steady late late "
    assert stream.getvalue().splitlines()[-1] == "2 passed, 0 failed"


def test_a_part_of_random_inputs_does_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "seen"
    code = (
        f"import pathlib; seen = pathlib.Path({str(seen)!r}); again = seen.exists(); seen.touch()\n"
        f"print('{PASSES}' if again else '{FAILS}'); raise SystemExit(0 if again else 101)"
    )
    monkeypatch.setattr(suite, "PARTS", [replace(part(code), repeats=False)])
    monkeypatch.setattr(verify, "verify", lambda *_arguments: Counts())
    assert not suite.test(Display(io.StringIO()), None)


def test_what_passes_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    good, lines = outcome(f"open({str(ran)!r}, 'a').write('x'); print('{PASSES}')", monkeypatch)
    assert (good, ran.read_text(), lines[-1]) == (True, "x", "2 passed, 0 failed")


def test_the_slowest_parts_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    _, lines = outcome(f"print('{PASSES}')", monkeypatch)
    begin = next(n for n, line in enumerate(lines) if line.startswith("The 1 slowest of 1 parts"))
    assert lines[begin + 3].split()[0] == "sample"


def test_lanes_run_side_by_side_and_each_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = tmp_path / "order"
    sample = part("")

    def writing(name: str, lane: Lane, before_s: float) -> Part:
        code = f"import time; time.sleep({before_s}); open({str(order)!r}, 'a').write('{name} '); print('{PASSES}')"
        return replace(sample, name=name, command=Command([sys.executable, "-c", code]), lane=lane)

    parts = [writing("slow", Lane.RUST, 1.5), writing("behind", Lane.RUST, 0), writing("beside", Lane.STACKS, 0)]
    monkeypatch.setattr(suite, "PARTS", parts)
    monkeypatch.setattr(verify, "verify", lambda *_arguments: Counts())
    stream = io.StringIO()
    assert suite.test(Display(stream), None)
    assert order.read_text().split() == ["beside", "slow", "behind"]
    assert stream.getvalue().endswith("\n6 passed, 0 failed\n")


def test_a_lane_that_is_done_takes_from_what_may_run_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = part("")
    # Each waits for the other two to have begun: one lane alone would not end.
    code = (
        "import pathlib, sys, time; folder = pathlib.Path({folder!r}); (folder / '{name}').touch()\n"
        "end = time.monotonic() + 20\n"
        "while len(list(folder.iterdir())) < 3:\n"
        "    time.sleep(0.02)\n"
        "    if time.monotonic() > end: sys.exit('alone')\n"
        f"print('{PASSES}')"
    )

    def meeting(name: str) -> Part:
        source = code.format(folder=str(tmp_path), name=name)
        return replace(sample, name=name, command=Command([sys.executable, "-c", source]), lane=Lane.ANY)

    monkeypatch.setattr(suite, "PARTS", [meeting(name) for name in ("one", "two", "three")])
    monkeypatch.setattr(verify, "verify", lambda *_arguments: Counts())
    assert suite.test(Display(io.StringIO()), None)
