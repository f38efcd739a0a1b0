"""An append over one-sided writes, beside one over TCP: from the head's order to its commit, and in processor time.

One append at a time to an in-memory group of two and three servers, whose shards look for what comes without sleeping.
The two servers of a pair have a core each, and the client that of the head: it runs only between two appends. Three
servers share two cores. Latency is the head's own (`chain_p50_us` of `quorate:live`). Then the same groups get as many
appends as they take, with 64 outstanding. Stacks over shared memory (`--ofi-provider shm`)
and over TCP follow one another in turn.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict

import redis

from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.quantiles import median
from quorate_harness.steady import append_once
from quorate_harness.unbudgeted import BEYOND_REACH

TCP, SHM = "tcp", "shm"
DEGREES = (2, 3)
ROUNDS = 3
RATE_PER_S = 500_000  # no limit in the way
SPIN_US = 1_000
WARMUP_S, SECONDS = 1.0, 5.0
OUTSTANDING = 64
SECONDS_READ = 4  # whole seconds of a measurement
GOALS_US = {2: 10, 3: 40}
ENVIRONMENTS = {
    TCP: {"QUORATE_SPIN_US": str(SPIN_US)},
    SHM: {"QUORATE_SPIN_US": str(SPIN_US), "QUORATE_TRANSPORT": "ofi", "QUORATE_OFI_PROVIDER": "shm"},
}

Cell = tuple[str, int]  # transport, degree


def measure(conditions: Conditions) -> list[Figure]:
    rounds = 1 if conditions.quick else ROUNDS
    p50s: dict[Cell, list[float]] = defaultdict(list)
    cpus: dict[Cell, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for degree in DEGREES:
            for transport, env in ENVIRONMENTS.items():
                p50_us, cpu_s = _one(conditions, transport, degree, env)
                cell = f"{transport}, degree {degree}"
                conditions.display.line(f"  {cell}: {p50_us:.0f} µs, {cpu_s:.2f} s a million appends")
                p50s[transport, degree].append(p50_us)
                cpus[transport, degree].append(cpu_s)
    figures = []
    for degree in DEGREES:
        tcp, shm = median(p50s[TCP, degree]), median(p50s[SHM, degree])
        note = f"over TCP with TLS in the same run {tcp:.0f} µs"
        figures += [
            Figure(f"ofi_shm_append_degree{degree}_p50_us", shm, "us", GOALS_US[degree], note=note),
            Figure(f"tcp_append_degree{degree}_p50_us", tcp, "us"),
        ]
    return [*figures, *_cpu_ratios(cpus)]


def _cpu_ratios(cpus: dict[Cell, list[float]]) -> list[Figure]:
    """Medians over all pairs of fleets that followed one another, and over the pairs of each degree."""
    pairs = {degree: zip(cpus[SHM, degree], cpus[TCP, degree], strict=True) for degree in DEGREES}
    ratios = {degree: [shm / tcp for shm, tcp in pairs[degree]] for degree in DEGREES}
    every = [ratio for degree in DEGREES for ratio in ratios[degree]]
    note = "processor time of all servers for a million appends of 64 bytes, 64 outstanding; all pairs of fleets"
    figures = [Figure("ofi_over_tcp_append_cpu_ratio", median(every), "ratio", 1.0, note=note)]
    for degree in DEGREES:
        by = f"{median(cpus[SHM, degree]):.2f} and {median(cpus[TCP, degree]):.2f} s a million"
        name = f"ofi_over_tcp_append_cpu_degree{degree}_ratio"
        figures.append(Figure(name, median(ratios[degree]), "ratio", note=by))
    return figures


def _one(conditions: Conditions, transport: str, degree: int, env: dict[str, str]) -> tuple[float, float]:
    """(p50 in microseconds, the servers' seconds of processor time for a million appends)."""
    with fleet(conditions.folder, conditions.display, degree, server_env=env, server_resources=BEYOND_REACH) as servers:
        group = servers.create_group("a", "in_memory", RATE_PER_S, replication_degree=degree)
        handle = servers.handle_file(group)
        cores = _pin(servers, group) if degree == 2 else []
        one = ("--outstanding", "1", "--seconds", f"{SECONDS}", "--warmup", f"{WARMUP_S}")
        append_once(servers, handle, conditions.folder, *one, prefix=cores)
        _expect_transport(servers, transport)
        p50_us = _chain_p50_us(servers, group)
        pids = ",".join(str(pid) for pid in servers.pids())
        many = ("--outstanding", f"{OUTSTANDING}", "--seconds", f"{SECONDS}", "--server-pids", pids)
        result = append_once(servers, handle, conditions.folder, *many)
        return p50_us, float(result["servers_cpu_s_per_m"])


def _expect_transport(servers: Fleet, transport: str) -> None:
    words = "the link goes by one-sided writes"
    said = sum(words in servers.log(name).read_text(errors="replace") for name in servers.names())
    if (transport == SHM) != (said > 0):
        raise MeasurementFailed(f"{said} servers say that {words}")


def _pin(servers: Fleet, group: str) -> list[str]:
    """A core for each server of the chain. The answer: what puts the client on the head's core."""
    names = servers.stack.servers_by_address()
    for core, replica in enumerate(servers.group(group)["replicas"]):
        pid = servers.pid(names[replica["address"]])
        subprocess.run(["taskset", "-acp", str(core), str(pid)], check=True, stdout=subprocess.DEVNULL)
    return ["taskset", "-c", "0"]


def _chain_p50_us(servers: Fleet, group: str) -> float:
    """The median of the last seconds' medians, as the head counted them."""
    found = []
    with redis.Redis.from_url(servers.stack.redis_url) as client:
        for _, entry in client.xrevrange("quorate:live", count=64 * SECONDS_READ):
            groups = json.loads(entry[b"d"])["groups"]
            found += [each["chain_p50_us"] for each in groups if each["group"] == group and each["append_per_s"]]
    if len(found) < SECONDS_READ:
        raise MeasurementFailed("the head told too few seconds of its latency")
    # The first ones are the load's begin and end.
    return median([float(each) for each in found[1 : SECONDS_READ + 1]])
