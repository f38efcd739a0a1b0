"""Several faults at random, one on top of the other."""

from __future__ import annotations

from quorate_chaos.coordinators import Unready
from quorate_chaos.faults import disks, links, processes
from quorate_chaos.trial import CATCH_UP_S, MEMORY, Fault, Shape, Trial

# At most one disk loses its data, and only while the group is whole. With every other copy stale or gone, a group
# rightly stays down, and the run would show nothing.
_DESTRUCTIVE = [disks.wiped_disk, disks.bits_of_stopped]
_OTHERS = [
    processes.kill_head,
    processes.kill_middle,
    processes.kill_tail,
    processes.stop_and_resume,
    processes.coordinator_down,
    links.isolate,
    links.one_way,
    links.cut_link,
    links.cut_and_kill,
    links.deposed_head,
    links.without_coordinator,
    links.flapping,
]


def at_random(trial: Trial) -> None:
    if trial.random.random() < 0.4:
        trial.random.choice(_DESTRUCTIVE)(trial)
        trial.fleet.wait_whole_or(CATCH_UP_S)
    for fault in trial.random.sample(_OTHERS, trial.random.randint(2, 3)):
        try:
            fault(trial)
        except (OSError, IndexError, Unready):
            trial.say("no victim can be named from the coordinator's view, so the next one is a guess")
            trial.kill(trial.random.choice(trial.running()), why="any server")
        if trial.random.random() < 0.5:
            trial.heal()
            trial.pause(0, 1.5)


FAULTS = [
    Fault(
        "combined",
        "two to four faults at random, overlapping",
        at_random,
        Shape(servers=6),
        may_lose=frozenset({MEMORY}),
        more_s=12.0,
    ),
]
