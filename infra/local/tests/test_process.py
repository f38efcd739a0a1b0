"""Starting, waiting for, stopping and finding again, with real (small) processes."""

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate_local.layout import Layout
from quorate_local.process import STOP_GRACE_S, ProcessFailed, ProcessSpec, Running, stop_all

READY = "import time; print('ready', flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout(tmp_path / "state")
    layout.create()
    yield layout
    for running in Running.recorded(layout):
        running.kill()


def spec(code: str, name: str = "thing", **changes: object) -> ProcessSpec:
    values: dict[str, object] = {"phase": 1, "ready_timeout_s": 10.0, **changes}
    command = [sys.executable, "-u", "-c", code]
    return ProcessSpec(name, command, lambda running: "ready" in running.output(), **values)  # type: ignore[arg-type]


def test_a_process_becomes_ready_and_stops_when_asked(layout: Layout) -> None:
    running = Running.start(spec(READY), layout)
    assert running.wait_ready(spec(READY)) < 10
    assert running.stop() == "stopped"
    assert not running.is_alive()
    assert Running.recorded(layout) == []


def test_the_record_is_enough_to_stop_it_from_elsewhere(layout: Layout) -> None:
    started = Running.start(spec(READY), layout)
    started.wait_ready(spec(READY))
    [found] = Running.recorded(layout)
    assert found.identity == started.identity
    assert found.stop() == "stopped"
    assert not started.is_alive()


def test_a_process_that_ignores_the_signal_is_killed_after_the_grace(layout: Layout) -> None:
    running = Running.start(spec(STUBBORN), layout)
    running.wait_ready(spec(STUBBORN))
    begun = time.monotonic()
    assert running.stop() == "killed"
    assert STOP_GRACE_S <= time.monotonic() - begun < STOP_GRACE_S + 3
    assert running.exit_code() == -signal.SIGKILL


def test_a_process_that_is_gone_is_forgotten(layout: Layout) -> None:
    running = Running.start(spec("pass"), layout)
    assert running.wait_exit(10)
    assert stop_all(Running.recorded(layout))[0][1] == "gone"
    assert Running.recorded(layout) == []


def test_an_early_end_names_the_process_its_code_and_its_last_output(layout: Layout) -> None:
    broken = spec("import sys; print('the disk is on fire'); sys.exit(5)", name="s3")
    running = Running.start(broken, layout)
    with pytest.raises(ProcessFailed) as failure:
        running.wait_ready(broken)
    assert failure.value.exit_code == 5
    assert "s3 ended with code 5" in str(failure.value)
    assert "its disk, or what is on it, is unusable" in str(failure.value)
    assert "the disk is on fire" in str(failure.value)


def test_a_timeout_names_the_process_and_shows_its_log(layout: Layout) -> None:
    slow = spec("import time; print('still looking'); time.sleep(60)", name="api", ready_timeout_s=0.5)
    running = Running.start(slow, layout)
    with pytest.raises(ProcessFailed, match=r"api was not ready after 0 s[\s\S]*still looking"):
        running.wait_ready(slow)


def test_output_of_an_earlier_run_does_not_count_as_ready(layout: Layout) -> None:
    first = Running.start(spec(READY), layout)
    first.wait_ready(spec(READY))
    first.stop()
    silent = spec("import time; time.sleep(60)", ready_timeout_s=0.5)
    with pytest.raises(ProcessFailed, match="was not ready"):
        Running.start(silent, layout).wait_ready(silent)


def test_a_command_that_does_not_exist_is_named(layout: Layout) -> None:
    missing = ProcessSpec("coordinator", ["/nonexistent/quorate"], lambda _: True, phase=1)
    with pytest.raises(ProcessFailed, match="coordinator could not be started"):
        Running.start(missing, layout)


def test_processes_are_found_in_the_order_of_their_phases(layout: Layout) -> None:
    for name, phase in [("worker", 3), ("s2", 2), ("s1", 2), ("redis", 1)]:
        Running.start(spec(READY, name=name, phase=phase), layout)
    assert [running.name for running in Running.recorded(layout)] == ["redis", "s1", "s2", "worker"]


def test_kill_is_immediate_even_for_the_stubborn(layout: Layout) -> None:
    running = Running.start(spec(STUBBORN), layout)
    running.wait_ready(spec(STUBBORN))
    running.kill()
    assert running.exit_code() == -signal.SIGKILL
