"""Packed hours: what was packed comes out again, in a few bytes a minute."""

import base64
import random
from dataclasses import replace

import pytest

from quorate_api.packed.format import Packed, pack
from quorate_api.telemetry.windows import HEAD_ROLES, HOUR_S, WINDOW_S, Window

HOUR = 1_795_824_000
GROUP = "00000000-0000-7000-8000-000000000001"
VERSION_1 = (
    "4ALUAVEDAD2I0C1ruE8ZyAijsOAHQDLOjT4bYb8rzqG6W4o/Q1c2J9d4HW7XFEPy5iI3D3J+mr8/djmtJv7YCX1SUZ+rAPYcdCP5"
    "1BFO0HGmvIKMRUVKWQeVfvq05mnIcbNUgCR5jlp+yzR2AASW6lLdYVLAZH7S0HjeLE55CNAzbPTthH+aNijswqYMxcQhxb2NznIK"
    "XsXzQp0gh4xX9KUPyByZ6lyGCEkWmrvaZJTsO53OzzuH4mE7tjCjsrMMahcWjJeaRR9nSAxDkaJ81bz224WX0J4Br6lWIba+gHrD"
    "0GSCjvakLMmGe5mwM8OXNPEbLIgOzwWLoyGt3vnpFhKy9p78sDMz3SZxAsxsRvBuwM9QaJcDUeRRMxoKKUif6rYh43T1XlFfk3B8"
    "ZfAErN9VjXfQPr+43Sp5YZp19ou5VJVrGlQaMZWMpOImhd0Sjs8t5C4EraAA"
)
VERSION_2 = (
    "4AEmALADAC2M5gk6EFsSXu6f1DbDRHhZPwB1nuTX15xhzyV5UlJ8DYO7xJ7wkYZxSNpVuZdZ1hiS2p6vRJbhANiYPPtmev3gyhnE"
    "jCyqb1lFa3XJ2VJ6bz5Vyb5JbVbzMihl1S1Y7dEQcOyf2+01x5D4SIBLrjrBhZOqxA4udNkkSWyFaR8BWOwr7WRaotbGkJUsUmpi"
    "aDuciD1tgucv3TT6O3i+8hv2eJI3v5KYQqtsgx8mIf8AAA=="
)


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
            rng.choice(["head", "sole", "tail", "learner", "follower"]), *(rng.randrange(1 << 62) for _ in range(19)),
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
    by_role = [window for window in expected if window.role in HEAD_ROLES or window.owed_read_entries]
    assert packed.judged(GROUP) == by_role
    assert packed.numbers("committed_bytes") == [window.committed_bytes for window in expected]


@pytest.mark.parametrize("kept", [VERSION_1, VERSION_2])
def test_an_hour_that_an_earlier_release_packed_can_be_read(kept: str) -> None:
    """A head's minute, as each version packed it."""
    assert Packed.of(base64.b64decode(kept)).windows(GROUP) == hour(random.Random(1))[:1]


def test_a_busy_hour_of_three_replicas_takes_few_bytes() -> None:
    assert len(pack(hour(random.Random(1)))) < 60 * 80
    assert len(pack(hour(random.Random(1)))) < 1.5 * len(pack(hour(random.Random(1), replicas=1)))
