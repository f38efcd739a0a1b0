"""Servers share idle capacity: a group bursts, the owner reclaims, and a server that dies and returns joins in."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from quorate_harness.fleet import Fleet, fleet
from quorate_harness.steady import Steady, Window
from quorate_local.display import Display
from quorate_local.options import ServerResources

SLA_PER_S = 500
SIZE_BYTES = 1_024
# Storage IO is scarce: two SLAs take all that admission may allocate of the servers. A persistent append of 8 KB is two
# operations, and admission allocates four fifths.
OPERATIONS = 2
ALLOCATABLE = 0.8
OWNER_IDLES = ("--rate", str(SLA_PER_S // 10))
OWNER_RETURNS = ("--rate", str(SLA_PER_S))
WANTS_MORE = ("--outstanding", "256", "--batch-entries-max", "16")
WINDOW_S = 0.25
# Clearly more than its SLA: there is 1.8 times the SLA for it.
BURST_PER_S = 1.4 * SLA_PER_S
HAS_SLA_PER_S = 0.9 * SLA_PER_S
INTERVAL_MS = 500
# Longer than servers go by the rates that they were told last.
GOES_ON_S = 5 * INTERVAL_MS / 1_000


def test_idle_capacity_is_granted_reclaimed_and_granted_again_when_a_server_died(tmp_path: Path) -> None:
    operations = round(2 * SLA_PER_S * OPERATIONS / ALLOCATABLE * 1.001)
    env = {"QUORATE_SHARE": "idle", "QUORATE_SHARE_INTERVAL_MS": str(INTERVAL_MS)}
    resources = ServerResources(storage_io_per_s=operations)
    with fleet(tmp_path, Display(quiet=True), 3, server_env=env, server_resources=resources) as servers:
        owner_group, bursting_group = (
            servers.create_group(name, "persistent", SLA_PER_S, SIZE_BYTES) for name in ("owner", "bursting")
        )
        servers.wait_whole(owner_group, bursting_group)
        with Steady(servers, "bursting", [bursting_group], "--size", str(SIZE_BYTES), *WANTS_MORE) as bursting:
            with owner_load(servers, owner_group, "idles", *OWNER_IDLES):
                wait_rate("burst capacity to be granted", bursting, lambda rate: rate >= BURST_PER_S, 12)
            with owner_load(servers, owner_group, "returns", *OWNER_RETURNS) as owner:
                wait_rate("the owner to have its SLA", owner, lambda rate: rate >= HAS_SLA_PER_S, 3)
                bursting.mark("reclaimed")
                owner.mark("back")
                rates = [rate_after(2, owner, "still back")]
                if rates[0] < HAS_SLA_PER_S:
                    rates.append(rate_after(2, owner, "still back"))  # the machine's disk may stand still once
                assert rates[-1] >= HAS_SLA_PER_S, f"it keeps what it reserved: {rates}"
                assert rate_of(bursting.mark("yields")) < BURST_PER_S, "no grant of burst capacity is left"
            with owner_load(servers, owner_group, "idles-again", *OWNER_IDLES) as owner:
                wait_rate("it to be granted again", bursting, lambda rate: rate >= BURST_PER_S, 12)
                assert rounds(servers) > 0, "the coordinator computes what is shared"
                servers.stack.crash("coordinator")
                time.sleep(GOES_ON_S)
                wait_rate("servers to share without it", bursting, lambda rate: rate >= BURST_PER_S, 3)
                servers.stack.restart("coordinator")
                servers.wait(lambda: rounds(servers) > 0, "the coordinator to compute again")
                follower = name_of_follower(servers, bursting_group)
                servers.stack.kill_server(follower)
                wait_rate("it to have its SLA without the server", bursting, lambda rate: rate >= HAS_SLA_PER_S, 10)
                servers.stack.restart_server(follower)
                servers.wait_whole(owner_group, bursting_group)
                wait_rate("it to be granted on all three servers", bursting, lambda rate: rate >= BURST_PER_S, 12)
                assert rate_of(owner.mark("calm")) >= HAS_SLA_PER_S / 10, "the owner is served all the while"
            bursting.end()
            bursting.verify()
        assert servers.stack.dead() == []
        recalls = sum(recalled(servers, name) for name in servers.names())
        assert recalls >= 1, "burst capacity was reclaimed, and did not just expire"


def rounds(servers: Fleet) -> int:
    with servers.coordinator_client(5) as client:
        return int(client.get("/v1/sharing").raise_for_status().json()["rounds"])


def owner_load(servers: Fleet, group: str, name: str, *flags: str) -> Steady:
    return Steady(servers, f"owner-{name}", [group], "--size", str(SIZE_BYTES), *flags)


def rate_of(window: Window) -> float:
    return float(window.acked_per_s)


def rate_after(seconds: float, load: Steady, name: str) -> float:
    time.sleep(seconds)
    return rate_of(load.mark(name))


def wait_rate(what: str, load: Steady, is_reached: Callable[[float], bool], timeout_s: float) -> None:
    """Wait until two windows in a row are so: one may be a burst of waiting appends."""
    load.mark(what)
    rates: list[float] = []
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        time.sleep(WINDOW_S)
        rates.append(rate_of(load.mark(what)))
        if len(rates) > 1 and all(is_reached(rate) for rate in rates[-2:]):
            return
    raise AssertionError(f"waited {timeout_s} s for {what}: {[round(rate) for rate in rates]} appends/s")


def name_of_follower(servers: Fleet, group: str) -> str:
    address = servers.group(group)["replicas"][1]["address"]
    return servers.stack.servers_by_address()[address]


def recalled(servers: Fleet, name: str) -> int:
    return servers.stack.layout.log(name).read_text(errors="replace").count("Recalled")
