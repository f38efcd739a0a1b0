"""A server joins with a token that works once."""

from __future__ import annotations

from pathlib import Path

from quorate_local import Stack, components
from quorate_local.components import Secrets
from quorate_local.layout import Layout
from quorate_local.process import Running


def start_server(stack: Stack, state: Path, name: str, token: str) -> Running:
    """A server with its own data folder that tries to join the stack with `token`."""
    layout = Layout(state)
    layout.create()
    keys = Secrets(layout)
    keys.join_token(name).write_text(token)
    control, redis_url = stack.addresses["coordinator_control"], stack.addresses["redis"]
    spec = components.server(name, layout, stack.options, keys, "127.0.0.1:0", control, redis_url)
    return Running.start(spec, layout)


def test_a_used_token_is_refused(stack: Stack, own_state: Path) -> None:
    used = (stack.layout.secrets / "join-s1").read_text()
    intruder = start_server(stack, own_state, "intruder", used)
    assert intruder.wait_exit(20), "a server that may not join must say so and stop"
    assert intruder.exit_code() not in (0, None)
    assert "join token" in intruder.output().lower()


def test_an_invented_token_is_refused(stack: Stack, own_state: Path) -> None:
    intruder = start_server(stack, own_state, "intruder", "nobody-gave-me-this")
    assert intruder.wait_exit(20)
    assert intruder.exit_code() not in (0, None)
    assert "join token" in intruder.output().lower()
