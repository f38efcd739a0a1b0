"""A command is bounded in time, and what it started ends with it."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quorate_checks.commands import (
    EXIT_INTERRUPTED,
    EXIT_TIMED_OUT,
    NICENESS,
    Command,
    interrupted,
    interruptible,
    run,
)
from quorate_local.identity import Identity


def ignore(_: float) -> None:
    pass


def test_output_and_exit_code_are_kept(tmp_path: Path) -> None:
    finished = run(Command([sys.executable, "-c", "print('hello'); raise SystemExit(3)"]), tmp_path / "log", ignore)
    assert (finished.exit_code, finished.output()) == (3, "hello\n")


def test_processor_time_counts_children_that_were_waited_for(tmp_path: Path) -> None:
    burn = "import time; begun = time.process_time()\nwhile time.process_time() - begun < 0.3: pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    finished = run(Command([sys.executable, "-c", code]), tmp_path / "log", ignore)
    assert 0.3 <= finished.cpu_seconds < 5


def test_a_command_that_yields_is_nicer_than_others_and_so_are_its_children(tmp_path: Path) -> None:
    child = "import os; print(os.nice(0))"
    code = f"import subprocess, sys, time; time.sleep(0.2); subprocess.run([sys.executable, '-c', {child!r}])"
    finished = run(Command([sys.executable, "-c", code]), tmp_path / "log", ignore, yields=True)
    assert int(finished.output()) >= NICENESS


def test_what_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid)); time.sleep(60)"
    )
    begun = time.monotonic()
    finished = run(Command([sys.executable, "-c", code], timeout_s=5), tmp_path / "log", ignore)
    assert finished.exit_code == EXIT_TIMED_OUT
    assert time.monotonic() - begun < 30
    assert "took longer than 5 s" in finished.output()
    try:
        grandchild = Identity.of(int(pid_file.read_text()))
    except ProcessLookupError:
        return
    # A killed process is gone a little later.
    end = time.monotonic() + 20
    while grandchild.is_alive() and time.monotonic() < end:
        time.sleep(0.02)
    assert not grandchild.is_alive()


def test_a_missing_part_says_so(tmp_path: Path) -> None:
    finished = run(Command(["true"], needs="no/such/folder"), tmp_path / "log", ignore)
    assert finished.exit_code == 127
    assert "no/such/folder is not in this checkout" in finished.output()


def test_a_missing_program_says_so(tmp_path: Path) -> None:
    finished = run(Command([str(tmp_path / "absent")]), tmp_path / "log", ignore)
    assert finished.exit_code == 127
    assert "absent is not there" in finished.output()


def test_an_interrupt_ends_running_commands_and_begins_no_other(tmp_path: Path) -> None:
    sleeps = Command([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run, sleeps, tmp_path / "log", ignore)
            with pytest.raises(KeyboardInterrupt), interruptible():
                raise KeyboardInterrupt
            assert running.result(30).exit_code == EXIT_INTERRUPTED
            behind = run(sleeps, tmp_path / "log", ignore)
            assert (behind.exit_code, behind.output()) == (EXIT_INTERRUPTED, "Interrupted.\n")
    finally:
        interrupted.clear()


def test_two_commands_share_no_folder_of_pytest(tmp_path: Path) -> None:
    show = Command([sys.executable, "-c", "import os; print(os.environ['PYTEST_DEBUG_TEMPROOT'])"])
    folders = [Path(run(show, tmp_path / "log", ignore).output().strip()) for _ in range(2)]
    assert folders[0] != folders[1]
    assert not any(folder.exists() for folder in folders), "removed with its command"
