"""`make fuzz`: builds the targets of `services/verify/fuzz` with coverage counters, and runs each for some seconds.

The counters are LLVM's, asked for by flags that stable Rust has, so neither a nightly nor cargo-fuzz is needed. The
layout is cargo-fuzz's, so `cargo fuzz run <target>` works where cargo-fuzz is installed.

`make test` takes the targets from its own build, without counters: they try the seeds and changes of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from quorate_checks import fuzz_seeds, rust_build
from quorate_harness import figures
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

FOLDER = rust_build.SERVICES / "verify" / "fuzz"
STATE = REPOSITORY / "build" / "fuzz"
INPUT_BYTES_MAX = 8192
UNIT_SECONDS_MAX = 10  # one input that takes longer is a finding
REPLAY_SECONDS_MAX = 60
GRACE_SECONDS = 60  # beyond the time asked for: reading the corpus, on a busy machine
FLAGS = [
    "--cfg fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
]
_EXECUTIONS = re.compile(r"^stat::number_of_executed_units:\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Ran:
    target: str
    executions: int
    finding: str  # the end of its output; empty when nothing was found


def replay(display: Display) -> int:
    """Have every target try its seeds, and earlier findings. 0 when nothing was found."""
    binaries = rust_build.binaries()
    return _report([_replay(target, binaries / target) for target in targets()], display)


def search(display: Display, seconds: int, keep: bool) -> int:
    """Run every target with libFuzzer; `keep`: the executions are figures. 0 when nothing was found."""
    binaries = _build()
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        ran = list(pool.map(lambda target: _search(target, binaries / target, seconds), targets()))
    if keep:
        for one in ran:
            figure = figures.Figure(f"fuzz_executions_{one.target}", one.executions, "executions")
            figures.keep([figure], f"make fuzz SECONDS={seconds}", figures.FOLDER / "fuzz.jsonl")
    return _report(ran, display)


def _report(ran: list[Ran], display: Display) -> int:
    for one in ran:
        display.line(f"{one.target:<20}{one.executions:>14,} executions{'  FOUND SOMETHING' if one.finding else ''}")
        if one.finding:
            display.line(one.finding)
    found = sum(1 for one in ran if one.finding)
    # The form of Rust's own test runner, which `make test` reads.
    display.line(f"test result: {'FAILED' if found else 'ok'}. {len(ran) - found} passed; {found} failed; 0 ignored;")
    return int(found > 0)


def targets() -> list[str]:
    return sorted(path.stem for path in (FOLDER / "fuzz_targets").glob("*.rs"))


def _build() -> Path:
    """The folder with the targets' binaries."""
    folder = rust_build.target_folder() / "with-counters"
    host = re.search(r"^host: (\S+)$", _output(["rustc", "-vV"]), re.MULTILINE)
    assert host, "rustc names its host"
    # A target of its own, or the flags would go to build scripts and macros too.
    command = ["cargo", "build", "--profile=fuzzing", "--locked", "--quiet", "--bins", "--package=quorate-fuzz"]
    env = {**os.environ, "CARGO_TARGET_DIR": str(folder), "RUSTFLAGS": " ".join(FLAGS)}
    argv = [*command, "--target", host[1]]
    subprocess.run(argv, cwd=rust_build.SERVICES, env=env, check=True, timeout=rust_build.BUILD_SECONDS_MAX)
    return folder / host[1] / "fuzzing"


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _replay(target: str, binary: Path) -> Ran:
    findings = STATE / "findings" / target
    findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as seeds:
        fuzz_seeds.write(target, Path(seeds))
        return _finished(target, [str(binary), seeds, str(findings)], REPLAY_SECONDS_MAX)


def _search(target: str, binary: Path, seconds: int) -> Ran:
    """The corpus stays in `build/fuzz`, so that a later run goes on from it. Findings stay too, and run first."""
    corpus, findings = STATE / "corpus" / target, STATE / "findings" / target
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as seeds:
        fuzz_seeds.write(target, Path(seeds))
        command = [
            str(binary),
            str(corpus),
            seeds,
            str(findings),
            f"-max_total_time={seconds}",
            f"-max_len={INPUT_BYTES_MAX}",
        ]
        command += ["-print_final_stats=1", f"-timeout={UNIT_SECONDS_MAX}", "-rss_limit_mb=1024"]
        command += [f"-artifact_prefix={findings}/"]
        return _finished(target, command, seconds + GRACE_SECONDS)


def _finished(target: str, command: list[str], timeout_s: float) -> Ran:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return Ran(target, 0, f"it did not end within {timeout_s:.0f} s")
    counted = _EXECUTIONS.search(done.stderr)
    executions = int(counted[1]) if counted else 0
    finding = "" if done.returncode == 0 and executions > 0 else "\n".join(done.stderr.splitlines()[-40:])
    return Ran(target, executions, finding)
