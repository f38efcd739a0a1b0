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
    spec = components.server(name, layout, stack.options, keys, "127.0.0.1:0", [control], redis_url)
    return Running.start(spec, layout)


def test_a_used_token_is_refused(stack: Stack, own_state: Path) -> None:
    used = (stack.layout.secrets / "join-s1").read_text()
    intruder = start_server(stack, own_state, "intruder", used)
    assert intruder.wait_exit(20), "a server that may not join must report it and stop"
    assert intruder.exit_code() not in (0, None)
    assert "join token" in intruder.output().lower()


def test_an_invented_token_is_refused(stack: Stack, own_state: Path) -> None:
    """Without a fingerprint nobody is trusted, and with a wrong one nobody else is. With the right one the coordinator
    refuses the secret, which it does not know."""
    _, _, pin = (stack.layout.secrets / "join-s1").read_text().strip().partition(".")
    for token, words in [
        ("nobody-gave-me-this", "fingerprint"),
        ("qjt_guess." + "0" * 64, "not the coordinator"),
        (f"qjt_guess.{pin}", "did not issue"),
    ]:
        intruder = start_server(stack, own_state, "intruder", token)
        assert intruder.wait_exit(20)
        assert intruder.exit_code() == 2
        assert "join token" in intruder.output().lower()
        assert words in intruder.output()
