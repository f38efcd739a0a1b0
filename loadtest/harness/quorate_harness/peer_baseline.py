"""Figures that each peer reached on two idle cores of such a machine: medians of three, with each at its best.

`make bench`, where no peer runs, derives goals from them. `make bench-peers` prints how far a run is from them, which
shows a peer that lacks something it needs.
"""

from __future__ import annotations

from quorate_harness.cells import ALONE, BESIDE, BOUNDS, CELL_1K, CELL_16K, CELL_64B, Cell, Mode, What

Row = dict[What, float]
TITLES = {
    "aeron": "Aeron Cluster",
    "kafka": "Kafka",
    "raft": "hashicorp/raft",
    "nats": "NATS",
    "zookeeper": "ZooKeeper",
    "etcd": "etcd",
}


def _many(per_s: float, p50_us: float, p99_us: float, cpu_s_per_m: float) -> Row:
    return {"per_s": per_s, "p50_us": p50_us, "p99_us": p99_us, "cpu_s_per_m": cpu_s_per_m}


def _rate(per_s: float, cpu_s_per_m: float) -> Row:
    return {"per_s": per_s, "cpu_s_per_m": cpu_s_per_m}


def _alone(p50_us: float) -> Row:
    return {"p50_us": p50_us}


# 64 B with 1,024 outstanding; 1 KB with 1,024; 16 KB with 128; 64 B one at a time.
_ROWS: dict[tuple[str, Mode], tuple[Row, Row, Row, Row]] = {
    ("aeron", "mem"): (_many(904e3, 1_037, 2_766, 1.8), _rate(178e3, 9.4), _rate(12.9e3, 133), _alone(256)),
    ("aeron", "sync"): (_many(516e3, 1_923, 3_632, 2.9), _rate(123e3, 13.1), _rate(9.7e3, 164), _alone(636)),
    ("kafka", "mem"): (_many(360e3, 2_618, 6_789, 3.0), _rate(62e3, 18.6), _rate(4.0e3, 282), _alone(396)),
    ("kafka", "sync"): (_many(89e3, 11_270, 18_010, 8.2), _rate(26e3, 33), _rate(1.3e3, 613), _alone(1_206)),
    ("raft", "mem"): (_many(218e3, 3_429, 18_300, 8.4), _rate(179e3, 10.0), _rate(27e3, 71), _alone(92)),
    ("raft", "sync"): (_many(96e3, 9_838, 29_628, 19.0), _rate(65e3, 27), _rate(9.7e3, 157), _alone(587)),
    ("nats", "mem"): (_many(107e3, 7_843, 26_741, 14.8), _rate(82e3, 19.6), _rate(18e3, 93), _alone(205)),
    ("nats", "sync"): (_many(89e3, 10_241, 24_293, 14.7), _rate(51e3, 26), _rate(7.2e3, 215), _alone(850)),
    ("zookeeper", "sync"): (_many(21e3, 48_001, 76_742, 65), _rate(20e3, 74), _rate(5.1e3, 320), _alone(523)),
    ("etcd", "mem"): (_many(16e3, 60_380, 128_650, 90), _rate(13e3, 114), _rate(2.3e3, 708), _alone(473)),
    ("etcd", "sync"): (_many(16e3, 60_380, 128_650, 90), _rate(13e3, 114), _rate(2.3e3, 708), _alone(909)),
}
BASELINE: dict[tuple[str, Cell], Row] = {
    (peer, cells[mode]): row
    for (peer, mode), rows in _ROWS.items()
    for cells, row in zip((CELL_64B, CELL_1K, CELL_16K, ALONE), rows, strict=True)
}


def goal(cell: Cell, what: What, is_spinning: bool = False) -> tuple[float | None, str]:
    """The goal of our figure by the peer baseline, and the peer that it was derived from."""
    for bound in BOUNDS:
        if (bound.cell, bound.what) == (cell, what) and not is_spinning:
            return bound.at_most, ""
    for beside in BESIDE:
        if (beside.cell, beside.what, beside.is_spinning) == (cell, what, is_spinning):
            theirs = {peer: row[what] for (peer, of), row in BASELINE.items() if of == cell and what in row}
            best = beside.best(theirs)
            if best is not None:
                return beside.ratio * theirs[best], f"the peer: {TITLES[best]} {theirs[best]:,.0f}"
    return None, ""
