"""The choice of replicas against the vectors that the TypeScript client must pass too."""

import json
import pathlib

import pytest

from quorate import limits
from quorate.windows import Windows

VECTORS = json.loads((pathlib.Path(__file__).parents[2] / "contract/vectors/read_windows.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=[case["name"] for case in VECTORS["cases"]])
def test_reads_go_where_the_vectors_say(case):
    windows = Windows()
    for number, event in enumerate(case["events"]):
        now = event["at_ms"] / 1e3
        if "choose" in event:
            assert windows.choose(now, event["choose"]) == event["gives"], f"event {number}"
            windows.sent(now, event["gives"])
        elif "failed" in event:
            windows.failed(event["failed"])
        else:
            windows.answered(event["answered"], event["latency_ms"] / 1e3)
            assert windows.window(event["answered"]) == pytest.approx(event["window"], abs=1e-5), f"event {number}"


def test_a_slow_replica_gets_few_reads_and_is_asked_again_now_and_then():
    chosen = [e["gives"] for e in VECTORS["cases"][1]["events"] if "choose" in e]
    assert chosen.count("c") < 0.06 * len(chosen)
    assert abs(chosen.count("a") - chosen.count("b")) < 0.2 * len(chosen)
    turning = [e for e in VECTORS["cases"][2]["events"] if "choose" in e]
    slow = [e["gives"] for e in turning if 1_000 <= e["at_ms"] < 1_500]
    after = [e["gives"] for e in turning if e["at_ms"] >= 3_500]
    assert slow.count("b") < 0.1 * len(slow)
    assert after.count("b") > 0.25 * len(after)


def test_without_a_replica_nothing_is_chosen_and_others_are_forgotten():
    windows = Windows()
    assert windows.choose(0.0, []) is None
    windows.sent(0.0, "a")
    windows.answered("a", 0.5)
    windows.keep(["b"])
    assert windows.window("a") == limits.READ_WINDOW_FIRST
    windows.answered("a", 0.5)  # late, from a replica that left
    windows.failed("a")
