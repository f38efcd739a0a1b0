"""Namespaces are made, partitions hold, and a machine without them is reported plainly."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from quorate_chaos import cli, machine
from quorate_harness import throttle
from quorate_local.identity import Identity
from quorate_local.options import REPOSITORY

TALK = '''
import socket, subprocess, sys
from quorate_chaos import machine
from quorate_chaos.network import CLIENTS, Network
machine.settle_in()
network = Network(["s1", "s2"], ["coordinator"])
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
network.lose("s1", 99)
print([reaches(*pair) for pair in pairs])
network.unblock()
print([reaches(*pair) for pair in pairs])
'''


def test_partitions_hold_and_heal_and_leave_nothing_behind() -> None:
    machine.require()
    before = namespaces()
    command = machine.inside([sys.executable, "-c", TALK])
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout.splitlines() == [
        "[True, True, True, True]",
        "[False, False, True, True]",
        "[True, True, False, True]",
        "[True, True, True, True]",
        "[False, False, False, True]",
        "[True, True, True, True]",
    ], done.stderr
    assert namespaces() == before


FLOW = '''
import subprocess, sys
from quorate_chaos import machine
from quorate_chaos.network import Network
machine.settle_in()
network = Network(["s1", "s2"], ["coordinator"])
network.create()
address = (network.addresses["s2"], 7000)
sink = f"""
import socket
listener = socket.create_server({address})
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    left = 128 << 10
    while left:
        left -= len(connection.recv(left))
    connection.sendall(b".")
"""
server = subprocess.Popen(network.command("s2", [sys.executable, "-c", sink]), stdout=subprocess.PIPE)
server.stdout.readline()
source = f"""
import socket, time
begun = time.monotonic()
connection = socket.create_connection({address})
connection.sendall(bytes(128 << 10))
connection.recv(1)
print(time.monotonic() - begun)
"""
def seconds():
    return float(subprocess.check_output(network.command("s1", [sys.executable, "-c", source])))
wide = seconds()
network.narrow("s1", 512, incoming=False)
out = seconds()
network.unblock()
network.narrow("s2", 512, outgoing=False)
into = seconds()
network.unblock()
print(wide < 0.5, out > 1.0, into > 1.0, seconds() < 0.5)
'''


def test_a_narrow_link_is_slow_until_it_is_healed() -> None:
    machine.require()
    assert machine.narrow_links_missing() is None
    command = machine.inside([sys.executable, "-c", FLOW])
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout.split() == ["True"] * 4, done.stdout + done.stderr


SYNC = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
sys.stdin.readline()
while line := sys.stdin.readline():
    begun = time.monotonic()
    os.pwrite(file, b"x" * 4096, 0)
    os.fdatasync(file)
    print(time.monotonic() - begun, flush=True)
"""


def test_a_slow_disk_is_slow_for_one_process_until_the_bound_is_lifted() -> None:
    folder = REPOSITORY / "build" / "chaos" / "throttle-test"
    if reason := throttle.missing(folder):
        pytest.skip(reason)
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", SYNC, str(folder / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None

        def sync_s() -> float:
            assert writer.stdin is not None
            assert writer.stdout is not None
            writer.stdin.write("\n")
            writer.stdin.flush()
            return float(writer.stdout.readline())

        writer.stdin.write("\n")
        sync_s()
        limit = throttle.Throttle(folder)
        limit.slow(writer.pid, 1)
        slow = sum(sync_s() for _ in range(3))
        limit.lift()
        quick = min(sync_s() for _ in range(5))
        writer.stdin.close()
    throttle.remove(folder)
    (folder / "file").unlink()
    assert slow > 1.0, "three syncs need three writes at least"
    assert quick < 0.5


STARTER = """
import subprocess, sys
from quorate_chaos import machine
child = subprocess.Popen(machine.inside(["sh", "-c", "echo inside; sleep 60"]))
print(child.pid, flush=True)
child.wait()
"""


def test_processes_inside_die_with_their_starter() -> None:
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


def test_without_root_or_tools_the_remedy_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert cli.main(["--short"]) == 2
    assert "root" in capsys.readouterr().err
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda tool: None if tool == "nft" else f"/usr/bin/{tool}")
    with pytest.raises(machine.Unfit, match=r"nftables[\s\S]*apt-get install"):
        machine.require()


def test_a_kernel_that_refuses_is_reported_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_PROBE", "echo Operation not permitted >&2; exit 1")
    with pytest.raises(machine.Unfit, match=r"Operation not permitted[\s\S]*CAP_NET_ADMIN"):
        machine.require()
