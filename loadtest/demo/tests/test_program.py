"""Programs of the demo report progress and a result, and fail with their log."""

import sys
from pathlib import Path

import pytest

from quorate_demo.program import Program, ProgramFailed


def start(code: str, tmp_path: Path) -> Program:
    return Program("writer", [sys.executable, "-c", code], {"number": 6}, tmp_path / "log")


def test_the_configuration_goes_in_and_the_result_comes_out(tmp_path: Path) -> None:
    code = (
        "import json, sys; n = json.load(sys.stdin)['number']\n"
        "print(json.dumps({'progress': {'acked': 1}})); print('noise'); print(json.dumps({'result': {'n': n * 7}}))"
    )
    program = start(code, tmp_path)
    assert program.result(20) == {"n": 42}
    assert program.progress == {"acked": 1}
    assert not program.running()


def test_an_end_without_a_result_shows_the_log(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match=r"writer ended with code 1[\s\S]*no such group"):
        start("raise SystemExit('no such group')", tmp_path).result(20)


def test_one_that_hangs_is_stopped(tmp_path: Path) -> None:
    program = start("import time; time.sleep(60)", tmp_path)
    with pytest.raises(ProgramFailed, match="did not end"):
        program.result(0.5)
    assert not program.running()
