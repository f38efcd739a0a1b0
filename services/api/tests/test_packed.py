"""Packed hours: what was packed comes out again, in a few bytes a minute."""

import random
from dataclasses import replace

import pytest

from quorate_api.packed.format import Packed, pack
from quorate_api.telemetry.windows import HEAD_ROLES, HOUR_S, WINDOW_S, Window

HOUR = 1_795_824_000
GROUP = "00000000-0000-7000-8000-000000000001"


def hour(rng: random.Random, replicas: int = 3) -> list[Window]:
    """A busy hour: no two minutes have the same load."""
    found = []
    entries, size = rng.randrange(1 << 40), rng.randrange(1 << 46)
    for start_s in range(HOUR, HOUR + HOUR_S, WINDOW_S):
        more = rng.randrange(20_000, 60_000)
        for place in range(replicas):
            window = Window(
                GROUP, place + 1, f"incarnation-{place}", 7, start_s, "follower" if place else "head",
                committed_entries=entries + more, committed_bytes=size + 70 * more,
                first_committed_entries=entries, first_committed_bytes=size,
                stored_bytes=(entries + more) % 100_000_000,
                read_entries=0 if place else rng.randrange(1_000),
            )  # fmt: skip
            if not place:
                latency = {bucket: rng.randrange(1, 5_000) for bucket in range(250, 264)}
                window = replace(
                    window, offered_entries=more, within_sla_entries=more, active_ms=60_000, from_ms=start_s * 1_000,
                    to_ms=(start_s + 60) * 1_000, latency_us=latency,
                )  # fmt: skip
            found.append(window)
        entries, size = entries + more, size + 70 * more
    return found


def odd(rng: random.Random) -> list[Window]:
    """Windows with every field in use: several epochs, logs and processes, and gaps."""
    found = {}
    for _ in range(rng.randrange(1, 200)):
        histograms = [{rng.randrange(2_000): rng.randrange(1 << 40) for _ in range(rng.randrange(5))} for _ in range(2)]
        window = Window(
            GROUP, rng.randrange(1, 1 << 40), rng.choice("abc"), rng.randrange(9), HOUR + rng.randrange(60) * WINDOW_S,
            rng.choice(["head", "sole", "tail", "learner", "follower"]), *(rng.randrange(1 << 62) for _ in range(17)),
            latency_us=histograms[0], judged_latency_us=rng.choice([None, histograms[1]]),
        )  # fmt: skip
        found[window.key] = window
    return list(found.values())


@pytest.mark.parametrize("seed", range(20))
def test_windows_come_out_as_they_were(seed: int) -> None:
    rng = random.Random(seed)
    windows = odd(rng) if seed else hour(rng)
    data = pack(windows)
    rng.shuffle(windows)
    assert pack(windows) == data, "in whichever order they come"
    expected = sorted(windows, key=lambda window: window.key)
    packed = Packed.of(data)
    assert packed.windows(GROUP) == expected
    assert packed.heads(GROUP) == [window for window in expected if window.role in HEAD_ROLES]
    assert packed.numbers("committed_bytes") == [window.committed_bytes for window in expected]


def test_a_busy_hour_of_three_replicas_takes_few_bytes() -> None:
    assert len(pack(hour(random.Random(1)))) < 60 * 80
    assert len(pack(hour(random.Random(1)))) < 1.5 * len(pack(hour(random.Random(1), replicas=1)))
