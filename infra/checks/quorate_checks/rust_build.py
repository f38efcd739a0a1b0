"""The one build of everything in Rust that `make test` needs: lints, tests, servers and fuzz targets come from it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from quorate_local.display import Display
from quorate_local.options import REPOSITORY

SERVICES = REPOSITORY / "services"
# As infra/setup/rust.sh builds; the profile is in services/Cargo.toml. Other flags or another compiler would build
# all of it again. `clippy-driver` is the compiler with lints.
FLAGS = ["--profile=checked", "--locked", "--workspace"]
TARGETS = ["--bins", "--tests"]
ENV = {"RUSTC_WORKSPACE_WRAPPER": "clippy-driver"}
BUILD_SECONDS_MAX = 1200


def lint(display: Display) -> int:
    """Show each warning of the build, or of an earlier one of the same sources. 0 when there is none."""
    done = _build("--message-format=json")
    warnings = dict.fromkeys(_warnings(done.stdout))  # a library is compiled for its tests as well
    for warning in warnings:
        display.line(warning)
    if done.returncode and not warnings:
        display.line(done.stderr)
    return int(bool(warnings) or done.returncode != 0)


def binaries() -> Path:
    """The folder with the build's programs."""
    _build("--quiet").check_returncode()
    return target_folder() / "checked"


def target_folder() -> Path:
    return Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "build" / "target"))


def _build(form: str) -> subprocess.CompletedProcess[str]:
    command = ["cargo", "build", *FLAGS, *TARGETS, form]
    env = {**os.environ, **ENV}
    return subprocess.run(
        command, cwd=SERVICES, env=env, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX, check=False
    )


def _warnings(lines: str) -> list[str]:
    """Cargo's messages, one JSON object a line, as the compiler shows them."""
    messages = (json.loads(line) for line in lines.splitlines())
    from_compiler = (one["message"] for one in messages if one["reason"] == "compiler-message")
    return [one["rendered"] for one in from_compiler if one["level"] in ("warning", "error")]
