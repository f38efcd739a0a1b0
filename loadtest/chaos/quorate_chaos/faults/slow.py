"""Disks and links that work slowly, or hang: no server is dead, and the chain waits for the slow one."""

from __future__ import annotations

from quorate_chaos import machine
from quorate_chaos.trial import DISK, FOLDER, Fault, Shape, Trial
from quorate_harness import throttle

# A sync takes about three writes, so a second or more: far beyond any sound disk, and well below a failure.
WRITES_PER_S = (1, 2)
# A tenth of the need of a group's load, and less.
NARROW_KBIT_PER_S = (64, 128)
LOSS_PERCENT = (5, 15, 30)
# 0.8 s of waiting (the coordinator's --slow-ms), then an epoch without the slow server; the rest is for a busy machine.
REPLACED_S = 10.0
GAP_MS_MAX = 10_000
# 1 s of hanging (the coordinator's --hung-ms), then an epoch; the client turns to the next head meanwhile.
HUNG_REPLACED_S = 5.0
HUNG_GAP_MS_MAX = 8_000


def slow_disk(trial: Trial) -> None:
    """All syncs of a replica take seconds. The chain waits for it until it is replaced."""
    victim = trial.random.choice([trial.head(DISK), trial.member(DISK)])
    writes_per_s = trial.random.choice(WRITES_PER_S)
    trial.fleet.slow_disk(victim, writes_per_s)
    trial.say(f"{victim} (of {DISK}) may write {writes_per_s} times a second")
    trial.expect_replaced(DISK, victim, REPLACED_S)
    trial.pause(1, 3)


def hung_disk(trial: Trial) -> None:
    """Syncs of a replica do not return, and its heartbeats go on. It must leave, and nobody else."""
    victim = trial.random.choice([trial.head(DISK), trial.member(DISK)])
    others = [name for name in trial.fleet.chain(DISK) if name != victim]
    trial.fleet.hang_disk(victim)
    trial.say(f"syncs of {victim} (of {DISK}) hang")
    trial.expect_replaced(DISK, victim, HUNG_REPLACED_S)
    trial.pause(1, 3)
    trial.expect_in_place(DISK, others)


def slow_link(trial: Trial) -> None:
    """A member's link has far less than its chain's rate, and waiting packets are late by a second."""
    group = trial.group()
    victim = trial.random.choice([trial.head(group), trial.member(group)])
    rate = trial.random.choice(NARROW_KBIT_PER_S)
    way = trial.random.choice(["outgoing", "incoming", "both"])
    trial.fleet.network.narrow(victim, rate, incoming=way != "outgoing", outgoing=way != "incoming")
    trial.say(f"the link of {victim} (of {group}) takes {rate} kbit/s, {way}")
    trial.expect_replaced(group, victim, REPLACED_S)
    trial.pause(1, 3)


def lossy_link(trial: Trial) -> None:
    """Packets from and to a member are lost at random. TCP repairs that, at a price."""
    group = trial.group()
    victim = trial.random.choice([trial.head(group), trial.member(group)])
    percent = trial.random.choice(LOSS_PERCENT)
    trial.fleet.network.lose(victim, percent)
    trial.say(f"{percent} % of the packets of {victim} (of {group}) are lost")
    trial.pause(5, 8)


def very_lossy_link(trial: Trial) -> None:
    """The most of them, of a member of either group."""
    group = trial.group()
    victim = trial.random.choice([trial.head(group), trial.member(group)])
    trial.fleet.network.lose(victim, max(LOSS_PERCENT))
    trial.say(f"{max(LOSS_PERCENT)} % of the packets of {victim} (of {group}) are lost")
    trial.pause(5, 8)


FAULTS = [
    Fault(
        "slow_disk",
        "a replica's disk takes seconds for a sync",
        slow_disk,
        more_s=16.0,
        gap_ms_max=GAP_MS_MAX,
        missing=lambda: throttle.missing(FOLDER),
    ),
    Fault(
        "hung_disk",
        "syncs of a replica's disk do not return",
        hung_disk,
        Shape(held_syncs=True),
        more_s=6.0,
        gap_ms_max=HUNG_GAP_MS_MAX,
    ),
    Fault(
        "slow_link",
        "a link takes a tenth of the load",
        slow_link,
        more_s=16.0,
        gap_ms_max=GAP_MS_MAX,
        missing=machine.narrow_links_missing,
    ),
    Fault("lossy_link", "a part of a member's packets is lost", lossy_link, more_s=4.0),
    Fault("very_lossy_link", "three of ten packets of a member are lost", very_lossy_link, more_s=4.0),
]
