"""Choice of peers and cells, failures of single peers, and resumed runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate_harness.cells import ALONE, CELL_64B, CELLS, Cell
from quorate_harness.customer import Refused
from quorate_peers import program
from quorate_peers.measure import Measured
from quorate_peers.peers.peer import Peer
from quorate_peers.peers.quorate import Quorate
from quorate_peers.program import choose


def test_peers_and_cells_are_chosen_by_name() -> None:
    everything = (list(program.PEERS), list(CELLS))
    assert choose("") == everything
    assert choose("nats, quorate") == (["quorate", "nats"], list(CELLS))
    assert choose("nats,*_out1,64b_sync") == (["nats"], [CELL_64B["sync"], ALONE["mem"], ALONE["sync"]])
    with pytest.raises(ValueError, match="2k_mem is neither"):
        choose("quorate,2k_mem")


class Good(Peer):
    name, title = "good", "Good"
    modes = {"mem": "", "sync": ""}  # noqa: RUF012

    @classmethod
    def build(cls) -> None: ...

    def start(self) -> None: ...

    def client(self) -> list[str]:
        return []

    def warm(self, cell: Cell) -> None: ...

    def measure(self, cell: Cell) -> Measured:
        return Measured(1000, 100.0, 100, 200, 1.5, 0.5, 0.0)


class Bad(Good):
    """Fails in an unforeseen way."""

    name, title = "bad", "Bad"
    is_mended = False

    def measure(self, cell: Cell) -> Measured:
        if cell.is_alone and not self.is_mended:
            raise BrokenPipeError("a node is dead")
        return super().measure(cell)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two peers in a folder of their own; one fails at one cell."""
    peers: dict[str, type[Peer]] = {"bad": Bad, "good": Good}
    for module in ("program", "report"):
        monkeypatch.setattr(f"quorate_peers.{module}.PEERS", peers)
    monkeypatch.setattr("quorate_peers.program.BUILD", tmp_path)
    monkeypatch.setattr("quorate_peers.program.measured_commit", lambda: "abc1234")
    monkeypatch.setattr("quorate_peers.program.measured_tree", lambda: "0fa1")
    for kind in ("memory", "disk"):
        monkeypatch.setattr(f"quorate_peers.peers.peer.{kind}_folder", lambda name: tmp_path / name)
    return tmp_path


def test_an_unforeseen_error_ends_one_turn_and_is_reported(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ["--repeats", "2", "--only", "*_mem,*_out1", "--publish", str(here / "out")]
    assert program.main(run) == 1
    said = capsys.readouterr().out
    assert "BrokenPipeError: a node is dead" in said
    assert "not measured: bad 64b_mem_out1: 0 of 2 repetitions" in said
    assert "bad 64b_mem:" not in said, "earlier cells are kept"
    assert "good" not in said.partition("not measured:")[2], "the other peer was measured in full"
    kept = (here / "rounds-0fa1.jsonl").read_text().splitlines()
    monkeypatch.setattr(Bad, "is_mended", True)
    assert program.main([*run, "--resume"]) == 0
    resumed = (here / "rounds-0fa1.jsonl").read_text().splitlines()
    assert resumed[: len(kept)] == kept
    assert len(resumed) == 2 * 2 * 5, "repetitions, peers, cells: each once"


def test_part_of_a_run_is_not_published_as_the_whole(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bad, "is_mended", True)
    monkeypatch.setattr("quorate_peers.program.RESULTS", here / "published")
    assert program.main(["--repeats", "1", "--only", "good"]) == 0
    assert not (here / "published").exists()
    assert program.main(["--repeats", "1", "--resume"]) == 0
    assert len(list((here / "published").iterdir())) == 2


def test_quorate_s_own_errors_are_a_peer_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from quorate_peers.cluster import PeerFailed

    def refused(*_: object, **__: object) -> None:
        raise Refused(409, {"code": "no_capacity"})

    monkeypatch.setattr("quorate_peers.peers.quorate.unbudgeted_stack", refused)
    peer = Quorate("mem")
    with pytest.raises(PeerFailed, match="no_capacity"):
        peer.start()
    peer.stop()
    assert not peer.cluster.folder.exists()
