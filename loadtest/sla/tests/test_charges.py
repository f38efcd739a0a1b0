"""Whether a difference between head and client is noticed, and programs agree on invented groups."""

from __future__ import annotations

import json
import random

from quorate_sla import charges
from quorate_sla.clients import LANGUAGES, command_of

HEAD = {"head_milli": [[10, 20, 0], [1, 2, 3]], "sla_wait_us": [17_000, 0]}
CLIENT = {"milli": [[10, 20, 0], [1, 2, 3]], "wait_us": [16_000.0, 0.0]}


def test_each_difference_counts() -> None:
    assert charges.disagreements(HEAD, CLIENT) == 0
    assert charges.disagreements(HEAD, CLIENT | {"milli": [[10, 20, 0], [1, 2, 4]]}) == 1
    assert charges.disagreements(HEAD, CLIENT | {"wait_us": [17_000.0, 3.0]}) == 2


def test_clients_agree_with_each_other() -> None:
    rng = random.Random(3)
    traces = [charges.Trace(charges.invent(rng), [charges.batch(rng) for _ in range(50)]) for _ in range(20)]
    asked = json.dumps([trace.as_json() for trace in traces])
    python, typescript = (charges._answers(command_of("charges", language), asked) for language in LANGUAGES)
    for one, other in zip(python, typescript, strict=True):
        assert one["milli"] == other["milli"]
        assert max(abs(a - b) for a, b in zip(one["wait_us"], other["wait_us"], strict=True)) < 1.0


def test_batches_are_of_all_sizes() -> None:
    rng = random.Random(1)
    found = [charges.batch(rng) for _ in range(2_000)]
    assert min(entries for entries, _ in found) == 1
    assert max(entries for entries, _ in found) > charges.ENTRIES_MAX // 2
    assert any(size == 0 for _, size in found)
    assert max(size for _, size in found) == charges.BYTES_MAX
