"""Network partitions: packets are dropped without a reset of connections."""

from __future__ import annotations

from quorate_chaos.network import CLIENTS
from quorate_chaos.trial import COORDINATOR, Fault, Trial


def isolate(trial: Trial) -> None:
    """A member is isolated: it reaches no other, and no other reaches it."""
    group = trial.group()
    victim = trial.random.choice([trial.head(group), trial.member(group)])
    network = trial.fleet.network
    network.block(victim, network.others(victim))
    trial.say(f"partition {victim} (of {group}) from everybody")
    trial.pause(1, 5)


def one_way(trial: Trial) -> None:
    """Packets from a member are lost, or packets to it; of all others or of its peers only."""
    group = trial.group()
    victim = trial.random.choice([trial.head(group), trial.member(group)])
    network = trial.fleet.network
    peers = [name for name in trial.fleet.names if name != victim]
    others = trial.random.choice([peers, network.others(victim), [*peers, CLIENTS]])
    is_deaf = trial.random.random() < 0.5
    network.block(victim, others, incoming=is_deaf, outgoing=not is_deaf)
    direction = "hears nothing from" if is_deaf else "is not heard by"
    trial.say(f"one way: {victim} (of {group}) {direction} {', '.join(others)}")
    trial.pause(2, 5)


def cut_link(trial: Trial) -> None:
    """Two neighbours of a chain are unreachable to one another; the coordinator and the clients reach both."""
    group = trial.group()
    chain = trial.fleet.chain(group)
    at = trial.random.randrange(len(chain) - 1)
    first, second = chain[at], chain[at + 1]
    is_both_ways = trial.random.random() < 0.5
    trial.fleet.network.block(second, [first], incoming=True, outgoing=is_both_ways)
    trial.say(f"partition {first} – {second} (of {group}), {'both ways' if is_both_ways else 'one way'}")
    trial.pause(2, 5)


def cut_for_long(trial: Trial) -> None:
    """The same for long: one of the two must be replaced although both are alive."""
    group = trial.group()
    first, second = trial.fleet.chain(group)[:2]
    trial.fleet.network.block(second, [first])
    trial.say(f"partition {first} – {second} (of {group}), both ways, for long")
    trial.pause(14, 16)


def without_coordinator(trial: Trial) -> None:
    """A head out of the coordinator's reach serves until it is deposed, and a little longer."""
    group = trial.group()
    victim = trial.head(group)
    network = trial.fleet.network
    network.block(victim, [COORDINATOR])
    trial.say(f"partition {victim} (head of {group}) from the coordinator")
    trial.pause(3, 5)


def cut_and_kill(trial: Trial) -> None:
    """Clients reach a head, its peers do not: entries that it takes then are lost when it dies."""
    group = trial.group()
    victim = trial.head(group)
    trial.fleet.network.block(victim, [name for name in trial.fleet.names if name != victim])
    trial.say(f"partition {victim} (head of {group}) from its peers")
    trial.pause(0.3, 2)
    trial.kill(victim, why="unreachable for its peers")
    trial.pause(2, 4)


def deposed_head(trial: Trial) -> None:
    """Only clients reach a head, for longer than a lease: it is deposed and does not know."""
    group = trial.group()
    victim = trial.head(group)
    network = trial.fleet.network
    network.block(victim, [name for name in network.others(victim) if name != CLIENTS])
    trial.say(f"partition {victim} (head of {group}) from all but its clients")
    trial.pause(2.5, 5)


def coordinator_alone(trial: Trial) -> None:
    """No server reaches the coordinator. In its view all servers have failed; no entry may be lost by that."""
    network = trial.fleet.network
    network.block(COORDINATOR, trial.fleet.names)
    trial.say("partition the coordinator from all servers")
    trial.pause(2, 5)


def halves(trial: Trial) -> None:
    """The servers are in two parts; the coordinator and the clients reach one of them, or both."""
    names = list(trial.fleet.names)
    trial.random.shuffle(names)
    cut = trial.random.randrange(1, len(names))
    here, there = names[:cut], names[cut:]
    also = [COORDINATOR, CLIENTS] if trial.random.random() < 0.5 else []
    for name in there:
        trial.fleet.network.block(name, [*here, *also])
    trial.say(f"halves: {', '.join([*here, *also])} | {', '.join(there)}")
    trial.pause(2, 5)


def flapping(trial: Trial) -> None:
    """A link comes and goes faster than a replica can be replaced."""
    group = trial.group()
    victim = trial.member(group)
    network = trial.fleet.network
    for _ in range(5):
        network.block(victim, [name for name in trial.fleet.names if name != victim])
        trial.say(f"partition {victim} (of {group}) from its peers")
        trial.pause(0.1, 1.0)
        network.unblock()
        trial.say("unblock")
        trial.pause(0.1, 0.8)


FAULTS = [
    Fault("isolate", "full partition of a member", isolate),
    Fault("one_way", "one-way partition of a member", one_way),
    Fault("cut_link", "two neighbours cannot reach one another", cut_link, degrees=(3, 3, 2, 5)),
    Fault(
        "cut_for_long",
        "two neighbours cannot reach one another for 15 s",
        cut_for_long,
        gap_ms_max=10_000,
        more_s=8.0,
    ),
    Fault("without_coordinator", "a head cannot reach the coordinator", without_coordinator),
    Fault("cut_and_kill", "a head loses its peers, then dies", cut_and_kill),
    # Clients that wait there until their deadlines would have a gap of more than four seconds.
    Fault("deposed_head", "a head reaches only its clients", deposed_head, gap_ms_max=3_000),
    Fault("coordinator_alone", "no server reaches the coordinator", coordinator_alone),
    Fault("halves", "the servers fall into two parts", halves),
    Fault("flapping", "a member's links come and go", flapping),
]
