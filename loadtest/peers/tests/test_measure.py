"""Following a client through its loads, processor time over its window, attempts at a disturbed cell."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from quorate_harness.cells import ALONE, CELL_1K, CELL_64B, CELLS, Cell, Mode
from quorate_harness.processor import ProcessorTime
from quorate_harness.quiet import Quiet
from quorate_peers.cluster import FIRST_PORT, LOOPBACK, Cluster, free_row_of_ports
from quorate_peers.measure import Client, Measured, MeasureFailed, NothingAcknowledged, NotLeader, of_window
from quorate_peers.pace import QUICK, USUAL, Load
from quorate_peers.peers import PEERS
from quorate_peers.peers.peer import Peer
from quorate_peers.program import undisturbed

LOAD = Load(64, 1, 0.0, 0.5)
# Answers each load with a window that acknowledges twice as many requests as the load has bytes.
SERVING = """while read size outstanding warmup window; do
  echo noise; echo '{"event":"begin"}'
  echo '{"event":"end","acked":'$((2*size))',"window_s":0.5,"p50_us":1,"p99_us":2}'
done"""


@pytest.fixture
def shell(tmp_path: Path):
    """Starts a shell script as a client."""
    clients: list[Client] = []

    def start(script: str) -> Client:
        clients.append(Client.start(["sh", "-c", script], tmp_path / "client.log"))
        return clients[-1]

    yield start
    for client in clients:
        client.stop()


def test_processor_time_is_taken_over_the_window() -> None:
    end = {"acked": 2_000_000, "window_s": 5.0, "p50_us": 10, "p99_us": 20}
    cell = of_window(end, ProcessorTime(servers_s=4.0, client_s=1.0, machine_s=5.0))
    assert (cell.per_s, cell.servers_cpu_s_per_m, cell.others_share) == (400_000.0, 2.0, 0.0)
    with pytest.raises(MeasureFailed, match="nothing was acknowledged"):
        of_window({**end, "acked": 0}, ProcessorTime(0, 0, 0))


def test_one_client_serves_one_load_after_another(shell) -> None:
    client = shell(SERVING)
    assert client.run(LOAD, []).per_s == 256.0
    assert client.run(Load(1024, 1, 0.0, 0.5), []).per_s == 4096.0


def test_a_client_s_last_output_is_reported(shell) -> None:
    with pytest.raises(MeasureFailed, match="no such host"):
        shell("read load; echo no such host >&2; exit 3").run(LOAD, [])
    dead = shell("exit 3")
    dead.process.wait(10)
    with pytest.raises(MeasureFailed):  # and no BrokenPipeError
        dead.run(LOAD, [])


def test_a_server_that_does_not_lead_is_reported(shell) -> None:
    with pytest.raises(NotLeader):
        shell("""read load; echo '{"event":"not_leader"}'; sleep 5""").run(LOAD, [])


def test_loads_are_what_the_clients_read() -> None:
    assert QUICK.measured(ALONE["mem"]).line() == "64 1 0.5 1\n"
    assert USUAL.warmup(CELL_64B["sync"], is_java=True).line() == "64 1024 15 0.1\n"
    assert USUAL.warmup(CELL_1K["mem"], is_java=False).line() == "1024 1024 3 0.1\n"


STALLED = """while read load; do
  echo '{"event":"begin"}'; echo '{"event":"end","acked":0,"window_s":0.1,"p50_us":0,"p99_us":0}'
done"""


def test_a_stall_at_the_end_of_the_warm_up_is_no_failure_and_in_a_window_it_is(fake_folder: None) -> None:
    class Stalled(FakePeer):
        warm, measure = Peer.warm, Peer.measure

        def client(self) -> list[str]:
            return ["sh", "-c", STALLED]

    peer = Stalled("mem", [])
    try:
        peer.warm(CELLS[0])
        client = peer._client
        with pytest.raises(NothingAcknowledged):
            peer.measure(CELLS[0])
        assert peer._client is client, "it is sound"
    finally:
        peer.stop()


class FakePeer(Peer):
    """Answers with windows with these shares of others; a share of None fails."""

    name = "fake"
    title = "Fake"

    def __init__(self, mode: Mode, shares: list[float | None]) -> None:
        super().__init__(mode)
        self.shares = shares
        self.said: list[str] = []

    @classmethod
    def build(cls) -> None: ...

    def start(self) -> None: ...

    def client(self) -> list[str]:
        return []

    def warm(self, cell: Cell) -> None:
        self.said.append("warm")

    def measure(self, cell: Cell) -> Measured:
        self.said.append("measure")
        share = self.shares.pop(0)
        if share is None:
            raise MeasureFailed("the client ended early")
        return Measured(1000, 100.0, 100, 200, 1.5, 0.5, share)


@pytest.fixture
def fake_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate_peers.peers.peer.memory_folder", lambda name: tmp_path / name)


@pytest.fixture
def fake(fake_folder: None):
    return lambda *shares: FakePeer("mem", list(shares))


def never_ending() -> Quiet:
    return Quiet(attempts_max=4, wait_s=10.0, budget_s=600.0, sleep=lambda _: None)


@pytest.mark.parametrize(
    ("shares", "kept", "attempts"),
    [
        ((0.01,), 0.01, 1),
        ((0.5, 0.02), 0.02, 2),
        ((0.5, 0.06, 0.3, 0.4), 0.06, 4),
        ((0.5, 0.4, 0.3, 0.06, 0.0), 0.06, 4),
    ],
)
def test_the_attempt_with_the_least_of_others_is_kept(fake, shares, kept: float, attempts: int) -> None:
    peer = fake(*shares)
    measured = undisturbed(peer, CELLS[0], never_ending())
    assert (measured.others_share, measured.attempts) == (kept, attempts)
    assert peer.said == ["warm", *["measure"] * attempts], "warmed once, by a run that does not count"


def test_a_client_that_failed_is_warmed_again_once(fake) -> None:
    peer = fake(None, 0.01)
    assert undisturbed(peer, CELLS[0], never_ending()).others_share == 0.01
    assert peer.said == ["warm", "measure", "warm", "measure"]
    with pytest.raises(MeasureFailed):
        undisturbed(fake(None, None, 0.01), CELLS[0], never_ending())


def test_a_row_of_ports_is_free_for_both_protocols() -> None:
    first = free_row_of_ports(30)
    assert first >= FIRST_PORT
    for port in range(first, first + 30):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_INET, kind) as one:
                one.bind((LOOPBACK, port))


def test_a_row_with_one_port_taken_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_row_of_ports(3)
    proposed = iter([first, first + 1])
    monkeypatch.setattr("quorate_peers.cluster.random.randrange", lambda *_: next(proposed))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((LOOPBACK, first))
        assert free_row_of_ports(2) == first + 1


def test_a_stopped_cluster_leaves_nothing(tmp_path: Path) -> None:
    cluster = Cluster("fake", tmp_path / "cluster")
    process = cluster.start("n0", ["sleep", "60"])
    before = cluster.kept_bytes()
    (cluster.folder / "n0").mkdir()
    (cluster.folder / "n0" / "log").write_bytes(b"x" * (1 << 20))
    assert cluster.kept_bytes() - before >= 1 << 20
    cluster.stop()
    assert process.poll() is not None
    assert not (tmp_path / "cluster").exists()


def test_spinning_is_for_one_at_a_time() -> None:
    assert all(cell.is_alone for cell in PEERS["quorate-spin"].cells)
