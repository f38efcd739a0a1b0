"""Messages and exits of a process that lacks something it needs."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from quorate_api.embedded import postgres, redis
from quorate_local import ProcessFailed, Stack, StackOptions, components
from quorate_local.process import EXIT_CODES, Running

NOBODY = "127.0.0.1:9"  # the discard port, without a listener
SOON_S = 60


def run_api(stack: Stack, command: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run `quorate-api` with the stack's environment, changed, until it ends with an error."""
    listen = f"127.0.0.1:{components.free_port()}"
    env = components.api_environment(
        stack.layout,
        stack.options,
        components.Secrets(stack.layout),
        listen,
        [stack.addresses["coordinator_http"]],
        stack.addresses["postgres"],
        stack.addresses["redis"],
    )
    env |= {"QUORATE_START_WAIT_S": "2", **changes}
    return subprocess.run(
        [components.quorate_api(), command],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=False,
    )


@pytest.mark.parametrize("command", ["api", "worker", "migrate"])
def test_without_postgres_it_reports_that_and_ends(stack: Stack, command: str) -> None:
    done = run_api(stack, command, DATABASE_URL=f"postgresql://nobody:secret-word@{NOBODY}/nothing")
    assert done.returncode == 3, done.stderr[-2000:]
    assert "postgres" in (done.stdout + done.stderr).lower()
    assert "secret-word" not in done.stdout + done.stderr


def test_the_worker_without_redis_reports_that_and_ends(stack: Stack) -> None:
    done = run_api(stack, "worker", REDIS_URL=f"redis://:secret-word@{NOBODY}/0")
    assert done.returncode == 3, done.stderr[-2000:]
    assert "redis" in (done.stdout + done.stderr).lower()
    assert "secret-word" not in done.stdout + done.stderr


def test_a_port_in_use_is_named(own_state: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        stack = Stack(StackOptions.from_environment(state=own_state, servers=1, coordinator_http_port=port))
        with pytest.raises(ProcessFailed) as failure:
            stack.start()
    assert failure.value.name == "coordinator"
    assert EXIT_CODES[4] in str(failure.value)
    assert str(port) in str(failure.value)
    # The processes that were started before it are stopped again.
    assert Running.recorded(stack.layout) == []
    assert postgres.pid(stack.layout.postgres) is None
    assert redis.pid(stack.layout.redis) is None


def test_bad_flags_end_with_code_2(stack: Stack) -> None:
    for name in ("quorate-replica", "quorate-coordinator"):
        binary = components.binary(stack.options, name)
        done = subprocess.run([binary, "--no-such-flag"], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 2
        assert "--no-such-flag" in done.stderr
