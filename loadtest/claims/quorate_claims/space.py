"""Servers that are full of promises keep them: nothing runs out of memory, and a full disk stops no group.

A small fleet gets groups of both durabilities until each is refused for memory or for disk. Then all are loaded until
each has appended several times what it retains. A container's limit is put around each server: one that takes more than
it said is killed. In memory, some groups get entries far shorter than they declared, each alone.

Then a stranger fills the disk of one server. Its persistent groups must take appends again while the disk stays full.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from quorate_claims.claim import Conditions
from quorate_harness.customer import Refused
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.steady import Steady
from quorate_local.display import Display
from quorate_local.layout import Layout
from quorate_local.options import ServerResources

SERVERS = 4
MEMORY_BYTES = 512 << 20
DISK_BYTES = 900 << 20
DEVICE_BYTES = 1 << 30  # the rest is for files that are no logs
JOURNAL = {"QUORATE_JOURNAL_SEGMENT_BYTES": str(20 << 20)}  # a journal that is small beside such disks
DECLARED_BYTES, SHORT_BYTES = 4_096, 16
RATE_PER_S = 400  # of each group
RETENTION_BYTES = {"persistent": 32 << 20, "in_memory": 24 << 20}  # disk is filled first: memory then takes the rest
GROUPS_MAX = 200  # far more than fit
RETENTIONS, RETENTIONS_QUICK = 3.0, 1.2  # appended, of what is retained
STUCK_S = 45.0
CGROUPS = Path("/sys/fs/cgroup/memory")


@dataclass
class Filled:
    """Groups by durability, and what each kind was refused for."""

    groups: dict[str, list[str]] = field(default_factory=dict)
    scarce: dict[str, str] = field(default_factory=dict)


def measure(conditions: Conditions) -> list[Figure]:
    if os.geteuid() != 0:
        raise MeasurementFailed("it needs root, to mount small disks and to put limits around servers")
    shutil.rmtree(conditions.folder / "state", ignore_errors=True)  # of a run that was killed
    layout = Layout(conditions.folder / "state")
    layout.create()
    with ExitStack() as stack:
        for number in range(1, SERVERS + 1):
            stack.enter_context(small_disk(layout.server(f"s{number}")))
        resources = ServerResources(memory_bytes=MEMORY_BYTES, disk_bytes=DISK_BYTES)
        started = fleet(
            conditions.folder,
            conditions.display,
            SERVERS,
            server_resources=resources,
            server_env=JOURNAL,
            wipes=False,
        )
        servers = stack.enter_context(started)
        is_limited = stack.enter_context(limited(servers))
        return _measure(conditions, servers, is_limited)


def _measure(conditions: Conditions, servers: Fleet, is_limited: bool) -> list[Figure]:
    display = conditions.display
    filled = fill(servers)
    count = {durability: len(groups) for durability, groups in filled.groups.items()}
    display.line(f"  {count} groups fit; the next ones lack {filled.scarce}")
    if filled.scarce != {"in_memory": "memory", "persistent": "disk"}:
        raise MeasurementFailed(f"refused for {filled.scarce}")
    persistent, in_memory = filled.groups["persistent"], filled.groups["in_memory"]
    flags = ["--timeout", "5", "--pace", "--outstanding", "2000", "--size"]
    with (
        Steady(servers, "declared", persistent + in_memory[::2], *flags, str(DECLARED_BYTES)) as declared,
        Steady(servers, "short", in_memory[1::2], *flags, str(SHORT_BYTES), "--batch-entries-max", "1") as short,
    ):
        seconds = _load_s(conditions)
        peaks = _watch(servers, display, seconds)
        killed = {name for name, peak in peaks.items() if peak is None or peak > MEMORY_BYTES}
        largest = max(peak or 0 for peak in peaks.values())
        display.line(
            f"  {seconds:.0f} s of load; the largest server had {largest / 1e6:,.0f} MB; killed: {killed or 'none'}"
        )
        stuck, healed_s = _fill_a_disk(servers, display, persistent)
        for load in (declared, short):
            load.end()
    note = (
        f"{sum(count.values())} groups on {SERVERS} servers of {MEMORY_BYTES >> 20} MiB, full by admission, then loaded"
    )
    note += ", under a container's limit" if is_limited else ", without a container's limit"
    return [
        Figure("memory_overcommit_kills", len(killed), "servers", 0, note=note),
        Figure("memory_promised_used_ratio", largest / MEMORY_BYTES, "of what the server may take", 1),
        Figure(
            "disk_full_stuck_groups", stuck, "groups", 0, note=f"a stranger filled one disk; {len(persistent)} groups"
        ),
        Figure(
            "disk_full_healed_s", healed_s, "s", STUCK_S, note="until every group took appends, the disk still full"
        ),
    ]


def fill(servers: Fleet) -> Filled:
    """Creates groups of each durability until one is refused."""
    filled = Filled()
    for durability, retention_bytes in RETENTION_BYTES.items():
        groups = filled.groups.setdefault(durability, [])
        for number in range(GROUPS_MAX):
            servers.display.progress(f"  {durability} group {number + 1}")
            try:
                sla = {"size": DECLARED_BYTES, "retention_bytes": retention_bytes}
                groups.append(
                    servers.create_group(f"{durability}-{number}".replace("_", "-"), durability, RATE_PER_S, **sla)
                )
            except Refused as refused:
                filled.scarce[durability] = str(refused.problem.get("refusal", {}).get("scarce_resource"))
                break
    return filled


def _load_s(conditions: Conditions) -> float:
    times = RETENTIONS_QUICK if conditions.quick else RETENTIONS
    return times * max(RETENTION_BYTES.values()) / (RATE_PER_S * DECLARED_BYTES)


def _watch(servers: Fleet, display: Display, seconds: float) -> dict[str, int | None]:
    """The peak of each server's memory while the load runs; None: it ended."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        display.progress(f"  load, {left:.0f} s left")
        time.sleep(min(left, 0.5))
    return {name: _peak(servers, name) for name in servers.names()}


def _peak(servers: Fleet, name: str) -> int | None:
    memory = servers.stack.processes()[name].identity.memory_bytes()
    return memory[1] if memory else None


def _fill_a_disk(servers: Fleet, display: Display, groups: list[str]) -> tuple[int, float]:
    """Fills the disk of the server that is in most of the groups; groups that are stuck, and seconds until none is."""
    addresses = servers.stack.servers_by_address()
    members = [addresses[replica["address"]] for group in groups for replica in servers.group(group)["replicas"]]
    victim = max(servers.names(), key=members.count)
    stuff = servers.stack.layout.server(victim) / "strangers-file"
    display.line(
        f"  a stranger fills the disk of {victim}, which is in {members.count(victim)} of {len(groups)} groups"
    )
    subprocess.run(["dd", "if=/dev/zero", f"of={stuff}", "bs=1M"], capture_output=True, timeout=120, check=False)
    begun = time.monotonic()
    has_fault = lambda: any(each["storage_fault"] for each in servers.servers().values())  # noqa: E731
    servers.wait(has_fault, "the fault to be reported", 120.0)
    fault_at = time.monotonic()
    display.line(f"  its storage fault was reported after {fault_at - begun:.1f} s")
    left: list[str] = groups
    while left and time.monotonic() - fault_at < STUCK_S:
        left = [group for group in left if _is_stuck(servers, group, victim)]
        time.sleep(0.2)
    healed_s = time.monotonic() - fault_at
    if not any(each["storage_fault"] for each in servers.servers().values()):
        raise MeasurementFailed("the disk did not stay full")
    display.line(f"  {len(left)} groups are stuck after {healed_s:.1f} s, the disk still full")
    return len(left), healed_s


def _is_stuck(servers: Fleet, group: str, victim: str) -> bool:
    """Whether the full disk is still in its chain, or it takes no appends."""
    view = servers.group(group)
    names = servers.stack.servers_by_address()
    is_in_chain = any(names[replica["address"]] == victim for replica in view["replicas"])
    return is_in_chain or view["status"] not in ("active", "degraded")


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of its own, as small as a server's disk is said to be."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DEVICE_BYTES}", "tmpfs", str(folder)], check=True, timeout=10)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, timeout=10)


@contextmanager
def limited(servers: Fleet) -> Iterator[bool]:
    """Puts each server into a memory group of its own, if there are such groups; whether it did.

    Files on a disk in memory count, too, so the limit has room for a full one.
    """
    folders = [CGROUPS / f"quorate-{os.getpid()}-{name}" for name in servers.names()]
    try:
        for folder, name in zip(folders, servers.names(), strict=True):
            folder.mkdir()
            (folder / "memory.limit_in_bytes").write_text(str(MEMORY_BYTES + DEVICE_BYTES))
            (folder / "cgroup.procs").write_text(str(servers.pid(name)))
        is_limited = True
    except OSError:
        is_limited = False
    try:
        yield is_limited
    finally:
        for folder in folders:
            _leave(folder)


def _leave(folder: Path) -> None:
    if not folder.exists():
        return
    for pid in (folder / "cgroup.procs").read_text().split():
        with suppress(OSError):  # it has ended meanwhile
            (CGROUPS / "cgroup.procs").write_text(pid)
    with suppress(OSError):  # its last process is ending
        folder.rmdir()
