"""The paper's regime of resources: a server of its testbed and the cost of a request, as far as the text says.

Stated (Filo §6, §6.1): a server takes 170 000 requests/s of 64 bytes in memory, and 150 000 of 2 KB. One thread serves
a tenant, so a tenant gets 76 000 of 64 bytes. A network interface has 10 Gbit/s, and a request costs its size. Each
disk does 40 000 operations of up to 8 KB a second. A persistent request is written twice, to two disks. A server has
two loggers.

Assumed, since only plots have it: CPU rises along a line through the two sizes, and is the same at each replica. A
persistent request costs 1.3 times the CPU, as in the profile shipped. A tenant gets one of two loggers, so half of the
disks.
"""

from __future__ import annotations

import random
from typing import Any

from quorate_papers.draw import DEGREES, DURABILITIES, SIZES

SERVER_PER_S = {64: 170_000, 2_048: 150_000}  # by bytes: in memory, as many tenants as the processors take
TENANT_PER_S = 76_000  # 64 bytes, in memory
NETWORK_BYTES_PER_S = 1_250_000_000
DISKS, DISK_OPERATIONS_PER_S, OPERATION_BYTES = 2, 40_000, 8_192
LOGGERS, WRITES = 2, 2
PERSISTENT_CPU_RATIO = 1.3
# CPU is counted as a part of all that a server has: it is its one unit of capacity.
PICO = 10**12


def capacity() -> list[float]:
    """All of it may be promised: the paper applies no safety factor to its figures."""
    return [1.0, float(NETWORK_BYTES_PER_S), float(DISKS * DISK_OPERATIONS_PER_S)]


def servers(count: int) -> list[dict[str, Any]]:
    return [{"id": f"s{number}", "capacity": capacity()} for number in range(count)]


def request(durability: str, size: int) -> tuple[int, int, int]:
    """Cost of one request at a replica: millionths of a millionth of a server's CPU, bytes, operations."""
    (small, few), (large, many) = ((bytes_, PICO / per_s) for bytes_, per_s in sorted(SERVER_PER_S.items()))
    cpu = few + (size - small) * (many - few) / (large - small)
    if durability == "in_memory":
        return round(cpu), size, 0
    return round(cpu * PERSISTENT_CPU_RATIO), size, -(-size // OPERATION_BYTES) * WRITES


def peak_per_s(durability: str, size: int) -> float:
    """The largest rate of one tenant: of its thread, of the network, of its logger's part of the disks."""
    cpu, network, operations = request(durability, size)
    thread = PICO * TENANT_PER_S / SERVER_PER_S[64]
    disks = DISKS * DISK_OPERATIONS_PER_S / LOGGERS
    peaks = [thread / cpu, NETWORK_BYTES_PER_S / network]
    return min([*peaks, disks / operations] if operations else peaks)


def applicants(seed: int, count: int) -> list[dict[str, Any]]:
    """Drawn as Filo §6.2 says: durability, size and degree, and rates up to the tenant's peak."""
    drawn = random.Random(seed)
    made = []
    for number in range(count):
        durability, size, degree = drawn.choice(DURABILITIES), drawn.choice(SIZES), drawn.choice(DEGREES)
        rate_per_s = max(1, int(peak_per_s(durability, size) * drawn.random()))
        cpu, network, operations = (amount * rate_per_s for amount in request(durability, size))
        replica = [cpu / PICO, float(network), float(operations)]
        made.append({"id": f"a{number}", "sla_per_s": rate_per_s, "replicas": [replica] * degree})
    return made
