"""Power cuts: kill -9, and some or all unsynced writes are lost. With kill -9 alone all of them survive."""

from __future__ import annotations

import shutil

from quorate_chaos.power import MODES
from quorate_chaos.trial import CATCH_UP_S, COORDINATOR, DISK, MEMORY, Fault, Shape, Trial

# Syncs take this long, so that some writes wait for one at the power cut; no sound disk is slower.
SLOW_SYNC_US = 200_000
# Long enough that no sync ends between a start and the power cut.
STALLED_SYNC_US = (1_000_000, 3_000_000)
LYING_S = 3.0


def power_cut(trial: Trial) -> None:
    """Coordinator and servers at once; they return in any order."""
    _cut(trial, *trial.fleet.names, COORDINATOR, why="of everything")
    trial.pause(0, 1)
    is_first = trial.random.random() < 0.5
    if is_first:
        trial.fleet.start_coordinator()
    for name in trial.random.sample(trial.fleet.names, len(trial.fleet.names)):
        trial.fleet.launch_server(name)
        trial.pause(0, 0.5)
    if not is_first:
        trial.fleet.start_coordinator()
    trial.say(f"start everything, the coordinator {'first' if is_first else 'last'}")
    trial.pause(2, 3)


def power_cut_one(trial: Trial) -> None:
    """One server after another; each returns at once, or after its replacement."""
    for _ in range(2):
        victim = trial.random.choice([trial.head(DISK), trial.member(DISK)])
        _cut(trial, victim, why=f"of {victim} ({DISK})")
        trial.pause(0, 2.5)
        trial.fleet.launch_server(victim)
        trial.say(f"start {victim}")
        trial.fleet.wait_whole_or(CATCH_UP_S)


def power_cut_slow_syncs(trial: Trial) -> None:
    """All servers, while each has writes with an unfinished sync."""
    trial.fleet.power.delay(SLOW_SYNC_US)
    trial.pause(1, 2)
    _cut(trial, *trial.fleet.names, why="of all servers, whose syncs took 0.2 s")
    trial.fleet.power.delay(0)
    trial.fleet.start_servers(trial.fleet.names)
    trial.say("start all servers")
    trial.pause(2, 3)


def kill_then_power_cut(trial: Trial) -> None:
    """A killed server that returns reads its unsynced writes; that does not make them durable. The power of all servers
    is cut within a second, before a later sync covers them."""
    trial.fleet.power.delay(SLOW_SYNC_US)
    trial.pause(1, 2)
    victims = trial.random.choice([[trial.head(DISK)], [trial.tail(DISK)], *[list(trial.fleet.names)] * 2])
    trial.kill(*victims, why="while writes wait for their syncs")
    trial.fleet.check_power()  # here: a process that has just begun has not counted yet
    is_served = trial.random.random() < 0.5
    if is_served:
        trial.fleet.power.delay(trial.random.choice([SLOW_SYNC_US, *STALLED_SYNC_US]))
        trial.fleet.start_servers(victims)
    else:
        trial.fleet.power.delay(0)
        for name in victims:
            trial.fleet.launch_server(name)
        # The first sync after the start must not cover the writes that it has read.
        trial.pause(0.1, 0.4)
        trial.fleet.power.delay(STALLED_SYNC_US[-1])
    trial.say(f"start {', '.join(victims)}" + ("" if is_served else ", and do not wait"))
    trial.pause(0, 1)
    mode = trial.random.choice(["all", *MODES])
    _cut(trial, *trial.fleet.names, why="of all servers", mode=mode, is_checked=not is_served)
    trial.fleet.power.delay(0)
    trial.fleet.start_servers(trial.fleet.names)
    trial.say("start all servers")
    trial.pause(2, 3)


def lying_syncs(trial: Trial) -> None:
    """Syncs succeed and do nothing: acknowledged entries are lost with the power, and the checker must miss them."""
    trial.fleet.power.lie(*trial.fleet.names)
    trial.say("syncs of all servers cover nothing from now on")
    trial.pause(LYING_S, LYING_S)
    _cut(trial, *trial.fleet.names, why="of all servers", mode="all")
    trial.fleet.start_servers(trial.fleet.names)
    trial.say("start all servers")
    trial.pause(2, 3)


def _cut(trial: Trial, *names: str, why: str, mode: str | None = None, is_checked: bool = False) -> None:
    if not is_checked:
        trial.fleet.check_power()
    mode = mode or trial.random.choice(MODES)
    lost = trial.fleet.cut_power(*names, choice=trial.random, mode=mode)
    trial.say(f"power cut {why}, {mode}: " + "; ".join(f"{name}: {rolled}" for name, rolled in lost.items()))


def _missing() -> str | None:
    return None if shutil.which("cc") else "there is no C compiler (cc)"


_POWER = Shape(power=True)
_ALL_MAY_LOSE = frozenset({MEMORY})

FAULTS = [
    Fault("power_cut", "power cut of everything", power_cut, _POWER, may_lose=_ALL_MAY_LOSE, missing=_missing),
    Fault(
        "power_cut_one",
        "power cut of one server, twice",
        power_cut_one,
        _POWER,
        may_lose=_ALL_MAY_LOSE,
        missing=_missing,
        more_s=6.0,
    ),
    Fault(
        "power_cut_slow_syncs",
        "power cut of all servers whose syncs are slow",
        power_cut_slow_syncs,
        _POWER,
        may_lose=_ALL_MAY_LOSE,
        missing=_missing,
    ),
    Fault(
        "kill_then_power_cut",
        "kill -9 of one or all, back, then a power cut",
        kill_then_power_cut,
        _POWER,
        may_lose=_ALL_MAY_LOSE,
        missing=_missing,
        more_s=6.0,
    ),
]
MUST_BE_FOUND = [
    Fault(
        "lying_syncs",
        "power cut of all servers whose syncs lie",
        lying_syncs,
        _POWER,
        may_lose=_ALL_MAY_LOSE,
        missing=_missing,
    ),
]
