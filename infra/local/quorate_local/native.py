"""Small programs and libraries in C for tests of the servers, built on demand."""

from __future__ import annotations

import subprocess
from pathlib import Path

_TIMEOUT_S = 120


class CannotCompile(Exception):
    """There is no C compiler, or it fails."""


def compile_program(source: Path, target: Path, *flags: str) -> None:
    command = ["cc", "-O2", "-o", str(target), str(source), *flags]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    except OSError as error:
        raise CannotCompile(f"a C compiler is needed, and cc cannot be run: {error}") from error
    if done.returncode != 0:
        raise CannotCompile(f"a C compiler is needed, and cc failed:\n{done.stderr[-2000:]}")


def compile_preload(source: Path, target: Path) -> None:
    """A library for LD_PRELOAD."""
    compile_program(source, target, "-shared", "-fPIC", "-pthread", "-ldl")
