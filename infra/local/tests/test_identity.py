"""A recorded process is signalled only if it is still that process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from quorate_local.identity import Identity


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def test_a_running_process_is_alive_and_survives_a_round_trip(child: subprocess.Popen[bytes]) -> None:
    identity = Identity.of(child.pid)
    assert identity.is_alive()
    assert Identity.from_json(identity.to_json()) == identity


def test_another_process_with_the_same_pid_is_not_signalled(child: subprocess.Popen[bytes]) -> None:
    recycled = replace(Identity.of(child.pid), start_ticks=Identity.of(child.pid).start_ticks - 1)
    assert not recycled.is_alive()
    assert recycled.send(signal.SIGKILL) is False
    assert child.poll() is None


def test_a_pid_of_before_a_reboot_is_not_signalled(child: subprocess.Popen[bytes]) -> None:
    before = replace(Identity.of(child.pid), boot_id="another boot")
    assert before.send(signal.SIGKILL) is False
    assert child.poll() is None


def test_a_zombie_is_dead(child: subprocess.Popen[bytes]) -> None:
    identity = Identity.of(child.pid)
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and not yet reaped
    assert not identity.is_alive()
    assert identity.memory_bytes() is None


def test_memory_is_in_bytes_and_the_greatest_is_at_least_the_present(child: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 10  # it takes its memory a moment after it was started
    resident = greatest = 0
    while resident <= 500_000 and time.monotonic() < until:
        memory = Identity.of(child.pid).memory_bytes()
        assert memory is not None
        resident, greatest = memory
    assert 500_000 < resident <= greatest < 1_000_000_000


def test_no_process_has_no_identity() -> None:
    with pytest.raises(ProcessLookupError):
        Identity.of(2**22 + 1)
