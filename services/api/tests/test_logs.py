"""Errors are logged with their place, and without the values at hand, which may be secrets."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import structlog
from quorate_api.observability import logs

logs.configure(sys.argv[1])

def fails(password: str) -> None:
    raise RuntimeError("it does not work")

try:
    fails("hunter2")
except RuntimeError:
    structlog.get_logger("test").exception("a request failed")
"""


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_an_error_is_logged_without_values(log_format: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, log_format], capture_output=True, text=True, timeout=60, check=True
    )
    assert "RuntimeError: it does not work" in done.stderr
    assert "in fails" in done.stderr
    assert "hunter2" not in done.stderr
