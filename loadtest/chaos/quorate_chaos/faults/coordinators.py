"""Three coordinators: the one that leads is lost, frozen or alone; disks are lost; a majority is away."""

from __future__ import annotations

from contextlib import suppress

from quorate_chaos.network import CLIENTS
from quorate_chaos.trial import Fault, Shape, Trial

THREE = Shape(coordinators=3)
GROWING = Shape(coordinators=3, begins_alone=True)
REPLACED_WITHIN_S = 25.0


def leader_killed(trial: Trial) -> None:
    """Twice: the next one leads, and is lost after the first has returned. Mostly a head dies with one of them."""
    at = trial.random.randrange(2)
    for number in range(2):
        leader = trial.leader()
        victims = _victims(trial) if number == at else []
        trial.kill(leader, *victims, why="the leading coordinator, and mostly a head with it")
        trial.pause(1.5, 3)
        trial.start_coordinators(leader)
        trial.pause(0.5, 2)


def leader_frozen(trial: Trial) -> None:
    """It wakes to a term that is over, and must decide nothing."""
    leader = trial.leader()
    trial.fleet.freeze(leader)
    trial.say(f"SIGSTOP {leader} (it leads)")
    trial.pause(0, 0.6)
    trial.kill(*_victims(trial), why="while nobody or another one leads")
    trial.pause(1, 4)
    trial.fleet.resume(leader)
    trial.say(f"SIGCONT {leader}")
    trial.pause(2, 3)


def leader_alone(trial: Trial) -> None:
    """It reaches no other coordinator: servers and clients may reach it, and it must decide nothing."""
    leader, network = trial.leader(), trial.fleet.network
    coordinators = trial.fleet.coordinators.names
    others = trial.random.choice([coordinators, network.others(leader), [*coordinators, CLIENTS]])
    network.block(leader, others)
    trial.say(f"partition {leader} (it leads) from {', '.join(name for name in others if name != leader)}")
    trial.pause(0, 1)
    trial.kill(*_victims(trial), why="its lease ends with another one")
    trial.pause(2, 4)


def leader_with_some(trial: Trial) -> None:
    """Two parts: the leader with some servers, and two coordinators with the others. The clients reach all."""
    leader, network = trial.leader(), trial.fleet.network
    servers = trial.random.sample(trial.fleet.names, len(trial.fleet.names))
    here = [leader, *servers[: trial.random.randrange(1, len(servers))]]
    there = [name for name in [*trial.fleet.coordinators.names, *servers] if name not in here]
    for name in there:
        network.block(name, here)
    trial.say(f"halves: {', '.join(here)} | {', '.join(there)}")
    trial.pause(2, 5)


def coordinators_one_way(trial: Trial) -> None:
    """A coordinator hears the others, or is heard, and not both."""
    names = trial.fleet.coordinators.names
    one = trial.random.choice([trial.leader(), trial.random.choice(names)])
    is_deaf = trial.random.random() < 0.5
    trial.fleet.network.block(one, names, incoming=is_deaf, outgoing=not is_deaf)
    trial.say(f"one way: {one} {'hears no other' if is_deaf else 'is not heard by another'} coordinator")
    trial.pause(1, 2)
    trial.kill(*_victims(trial), why="meanwhile")
    trial.pause(2, 4)


def coordinator_wiped(trial: Trial) -> None:
    """A disk is lost with its process. A new member comes in its place, and an operator removes the old one."""
    coordinators = trial.fleet.coordinators
    name = trial.random.choice([trial.leader(), trial.random.choice(coordinators.names)])
    old = coordinators.quorum(name)["member"]
    trial.kill(name, why="and its disk is lost")
    coordinators.wipe(name)
    trial.pause(0.5, 2)
    trial.start_coordinators(name)
    trial.kill(*_victims(trial), why="while the newcomer learns")
    done = coordinators.replace(old, REPLACED_WITHIN_S)
    trial.say(f"replace {old}: {(done.stdout + done.stderr).strip()}")
    if done.returncode != 0:
        trial.findings.append(f"member {old} was not replaced: {done.stderr.strip()}")
    trial.pause(1, 2)


def coordinators_rolled(trial: Trial) -> None:
    """One after the other is restarted, while a head dies."""
    names = list(trial.fleet.coordinators.names)
    trial.random.shuffle(names)
    at = trial.random.randrange(len(names))
    for number, name in enumerate(names):
        victims = _victims(trial) if number == at else []
        trial.kill(name, *victims, why="a restart of all coordinators, one by one")
        trial.pause(0, 0.5)
        trial.start_coordinators(name)


def coordinators_grown(trial: Trial) -> None:
    """One becomes three, while heads die. Then the first one is lost."""
    first, *others = trial.fleet.coordinators.names
    for name in others:
        trial.start_coordinators(name)
        trial.kill(*_victims(trial), why="while another coordinator learns")
        trial.pause(0.5, 2)
    trial.kill(first, why="the fleet began with it")
    trial.kill(*_victims(trial), why="two of three coordinators are there")
    trial.pause(2, 3)


def no_majority(trial: Trial) -> None:
    """Two are lost: nothing is decided, and appends go on. A head that dies is replaced when they are back."""
    leader = trial.leader()
    others = [name for name in trial.fleet.coordinators.names if name != leader]
    lost = [leader, trial.random.choice(others)]
    trial.kill(*lost, why="two of three coordinators")
    trial.pause(2, 4)
    victims = trial.random.sample(trial.fleet.names, 1) if trial.random.random() < 0.5 else []
    trial.kill(*victims, why="nobody decides at present")
    trial.start_coordinators(*lost)
    trial.pause(2, 3)


def _victims(trial: Trial) -> list[str]:
    """Mostly a group's head. Nobody where no coordinator can name it."""
    if trial.random.random() < 0.3:
        return []
    with suppress(OSError):
        return [trial.head(trial.group())]
    return []


FAULTS = [
    Fault("leader_killed", "kill -9 the leading coordinator of three, twice", leader_killed, THREE, more_s=4.0),
    Fault("leader_frozen", "SIGSTOP the leading coordinator, then SIGCONT", leader_frozen, THREE),
    Fault("leader_alone", "the leading coordinator reaches no other", leader_alone, THREE),
    Fault("leader_with_some", "the leading coordinator is in the smaller part", leader_with_some, THREE),
    Fault("coordinators_one_way", "a coordinator hears the others, or is heard", coordinators_one_way, THREE),
    Fault("coordinator_wiped", "a coordinator's disk is lost and replaced", coordinator_wiped, THREE, more_s=6.0),
    Fault("coordinators_rolled", "kill -9 each coordinator, one by one", coordinators_rolled, THREE, more_s=4.0),
    Fault("coordinators_grown", "one coordinator becomes three", coordinators_grown, GROWING, more_s=4.0),
    Fault("no_majority", "kill -9 two of three coordinators", no_majority, THREE, more_s=4.0),
]
