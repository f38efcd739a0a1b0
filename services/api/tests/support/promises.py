"""Promises of an SLA that does not change."""

from math import inf

from quorate_api.sla.promise import Promise

SIZE_BYTES = 64


def promise(durability: str, latency: str = "standard", availability_ppm: int = 999_500) -> Promise:
    sla = {"durability": durability, "request_size_bytes": SIZE_BYTES, "latency": latency}
    return Promise.of(availability_ppm, [(inf, sla)])
