"""Namespaces are made, partitions hold, and where that cannot be it is said plainly."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from quorate_chaos import cli, machine
from quorate_local.identity import Identity

TALK = '''
import socket, subprocess, sys
from quorate_chaos import machine
from quorate_chaos.network import CLIENTS, Network
machine.settle_in()
network = Network(["s1", "s2"])
network.create()
server = """
import socket
listener = socket.create_server(('{}', 7000))
print('ready', flush=True)
while True:
    listener.accept()[0].close()
"""
processes = []
for name in ("s1", "s2"):
    command = network.command(name, [sys.executable, "-c", server.format(network.addresses[name])])
    processes.append(subprocess.Popen(command, stdout=subprocess.PIPE))
    processes[-1].stdout.readline()
client = "import socket; socket.create_connection(('{}', 7000), timeout=0.5).close()"
def reaches(name, other):
    command = [sys.executable, "-c", client.format(network.addresses[other])]
    command = command if name == CLIENTS else network.command(name, command)
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0
pairs = [("s1", "s2"), ("s2", "s1"), (CLIENTS, "s1"), (CLIENTS, "s2")]
print([reaches(*pair) for pair in pairs])
network.block("s1", ["s2"])
print([reaches(*pair) for pair in pairs])
network.unblock()
network.block("s1", [CLIENTS], incoming=True, outgoing=False)
print([reaches(*pair) for pair in pairs])
network.unblock()
print([reaches(*pair) for pair in pairs])
'''


def test_partitions_hold_and_heal_and_nothing_is_left() -> None:
    machine.require()
    before = namespaces()
    command = machine.inside([sys.executable, "-c", TALK])
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout.splitlines() == [
        "[True, True, True, True]",
        "[False, False, True, True]",
        "[True, True, False, True]",
        "[True, True, True, True]",
    ], done.stderr
    assert namespaces() == before


STARTER = """
import subprocess, sys
from quorate_chaos import machine
child = subprocess.Popen(machine.inside(["sh", "-c", "echo inside; sleep 60"]))
print(child.pid, flush=True)
child.wait()
"""


def test_what_runs_inside_dies_with_whoever_started_it() -> None:
    starter = subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    lines = sorted([starter.stdout.readline(), starter.stdout.readline()])
    inside = Identity.of(int(lines[0]))
    assert lines[1] == "inside\n"
    starter.kill()
    starter.wait()
    deadline = time.monotonic() + 10
    while inside.is_alive():
        assert time.monotonic() < deadline, "it outlived its starter"
        time.sleep(0.02)


def namespaces() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


def test_without_root_or_tools_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert cli.main(["--short"]) == 2
    assert "root" in capsys.readouterr().err
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda tool: None if tool == "nft" else f"/usr/bin/{tool}")
    with pytest.raises(machine.Unfit, match=r"nftables[\s\S]*apt-get install"):
        machine.require()


def test_a_kernel_that_refuses_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_PROBE", "echo Operation not permitted >&2; exit 1")
    with pytest.raises(machine.Unfit, match=r"Operation not permitted[\s\S]*CAP_NET_ADMIN"):
        machine.require()
