"""Processes that end, stop for a while, or all end at once."""

from __future__ import annotations

import subprocess
import sys
import time

from quorate_chaos.trial import CATCH_UP_S, COORDINATOR, MEMORY, Fault, Shape, Trial

SHORT_STOPS_S = 60.0
SHORT_STOP_S = (0.02, 0.18)  # below 200 ms, with the time that a signal takes on a busy machine


def kill_head(trial: Trial) -> None:
    group = trial.group()
    trial.kill(trial.head(group), why=f"head of {group}")
    trial.pause(3, 5)


def kill_middle(trial: Trial) -> None:
    group = trial.group()
    trial.kill(trial.middle(group), why=f"middle of {group}")
    trial.pause(3, 5)


def kill_tail(trial: Trial) -> None:
    group = trial.group()
    trial.kill(trial.tail(group), why=f"tail of {group}")
    trial.pause(3, 5)


def kill_several(trial: Trial) -> None:
    """All but one of a chain at once, the head among them in half of the runs."""
    group = trial.group()
    chain = trial.fleet.chain(group)
    spared = trial.random.choice([chain[0], trial.random.choice(chain)])
    trial.kill(*[name for name in chain if name != spared], why=f"all of {group} but {spared}")
    trial.pause(3, 5)


def kill_and_return(trial: Trial) -> None:
    """Restarted at once, repeatedly: it returns before its failure is noticed, or during its replacement."""
    group = trial.group()
    for _ in range(3):
        victim = trial.member(group)
        trial.kill(victim, why=f"of {group}, to come back at once")
        trial.pause(0, 0.8)
        trial.fleet.launch_server(victim)
        trial.pause(0.5, 2)


def stop_and_resume(trial: Trial) -> None:
    """SIGSTOP: its sockets stay open. Shorter or longer than a lease; a deposed head wakes and must not serve."""
    group = trial.group()
    victim = trial.random.choice([trial.head(group), trial.member(group)])
    for _ in range(2):
        trial.fleet.freeze(victim)
        trial.say(f"SIGSTOP {victim} (of {group})")
        trial.pause(0.3, 3.5)
        trial.fleet.resume(victim)
        trial.say(f"SIGCONT {victim}")
        trial.pause(0.5, 1.5)


def coordinator_down(trial: Trial) -> None:
    trial.kill(COORDINATOR, why="servers must go on without it")
    trial.pause(3, 5)


def coordinator_and_head(trial: Trial) -> None:
    """The head dies without a coordinator to see it; the coordinator notices when it returns."""
    group = trial.group()
    victim = trial.head(group)
    names = [COORDINATOR, victim]
    trial.random.shuffle(names)
    trial.kill(names[0], why="with the other soon after")
    trial.pause(0, 0.4)
    trial.kill(names[1], why=f"{victim} is head of {group}")
    trial.pause(1, 2.5)
    trial.fleet.start_coordinator()
    trial.say("start coordinator")
    trial.pause(2, 4)


def restart_all(trial: Trial) -> None:
    """All servers at once. In-memory groups are lost, and must be reported so."""
    names = list(trial.fleet.names)
    trial.kill(*names, why="all servers")
    trial.pause(0, 2)
    trial.say("start all servers")
    trial.fleet.start_servers(names)
    trial.pause(2, 3)


def freeze_coordinator(trial: Trial) -> None:
    """It wakes to heartbeats that are late only because it was stopped; no server has failed."""
    trial.fleet.freeze(COORDINATOR)
    trial.say("SIGSTOP coordinator")
    trial.pause(1, 5)
    trial.fleet.resume(COORDINATOR)
    trial.say("SIGCONT coordinator")
    trial.pause(2, 3)


def freeze_all(trial: Trial) -> None:
    """Like a machine that sleeps: every server stops at once, and continues."""
    for name in trial.fleet.names:
        trial.fleet.freeze(name)
    trial.say("SIGSTOP all servers")
    trial.pause(0.5, 4)
    for name in trial.random.sample(trial.fleet.names, len(trial.fleet.names)):
        trial.fleet.resume(name)
        trial.pause(0, 0.3)
    trial.say("SIGCONT all servers")
    trial.pause(2, 3)


def killed_in_writes(trial: Trial) -> None:
    """Servers die again and again while they write into one another's memory."""
    for _ in range(5):
        group = trial.group()
        victim = trial.random.choice([trial.head(group), trial.member(group)])
        trial.kill(victim, why=f"of {group}, in the middle of one-sided writes")
        trial.pause(0.2, 1.5)
        trial.fleet.launch_server(victim)
        trial.fleet.wait_whole_or(CATCH_UP_S)


def short_stops(trial: Trial) -> None:
    """On a machine that is busy with other things, any process stops for a moment, again and again. Nothing is broken,
    so nobody may be accused and no chain may change."""
    seen = trial.fleet.last_event()
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    until = time.monotonic() + SHORT_STOPS_S
    stops = 0
    try:
        while time.monotonic() < until:
            victim = trial.random.choice([*trial.fleet.names, COORDINATOR])
            trial.fleet.freeze(victim)
            trial.pause(*SHORT_STOP_S)
            trial.fleet.resume(victim)
            stops += 1
            trial.pause(0.1, 1.0)
    finally:
        busy.kill()
        busy.wait()
    trial.say(f"{stops} stops in {SHORT_STOPS_S:.0f} s")
    trial.expect_quiet(seen)


FAULTS = [
    Fault("kill_head", "kill -9 a head", kill_head),
    Fault("kill_middle", "kill -9 a replica in the middle", kill_middle, degrees=(3, 3, 5)),
    Fault("kill_tail", "kill -9 a tail", kill_tail),
    Fault("kill_several", "kill -9 all of a chain but one, at once", kill_several),
    Fault(
        "kill_and_return",
        "kill -9 and start at once, three times",
        kill_and_return,
        # Three restarts, quicker than a replacement learns, may lose every copy of an in-memory group.
        may_lose=frozenset({MEMORY}),
    ),
    Fault("stop_and_resume", "SIGSTOP, then SIGCONT, twice", stop_and_resume),
    Fault(
        "killed_in_writes",
        "kill -9 in one-sided writes, five times",
        killed_in_writes,
        Shape(one_sided=True),
        more_s=20.0,
    ),
    Fault("frozen_in_writes", "SIGSTOP in one-sided writes, twice", stop_and_resume, Shape(one_sided=True)),
    Fault("short_stops", "SIGSTOPs below 200 ms on a busy machine, for a minute", short_stops, more_s=52.0),
    Fault("coordinator_down", "kill -9 the coordinator", coordinator_down),
    Fault("coordinator_and_head", "kill -9 coordinator and head together", coordinator_and_head),
    Fault("restart_all", "kill -9 all servers at once, start them again", restart_all, may_lose=frozenset({MEMORY})),
    Fault("freeze_coordinator", "SIGSTOP the coordinator, then SIGCONT", freeze_coordinator),
    Fault("freeze_all", "SIGSTOP all servers, then SIGCONT", freeze_all),
]
