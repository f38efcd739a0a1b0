"""Wall clocks that step. Time spans are measured on the monotonic clock, which no program can set."""

from __future__ import annotations

from quorate_chaos.trial import COORDINATOR, DISK, MEMORY, Fault, Shape, Trial

STEPS_S = (-86_400, -3_600, -10, 10, 1_200, 2_400)
# More than a token's lifetime: the server refuses tokens then, and serves again when its clock is right.
FAR_STEPS_S = (7_200, 10 * 86_400, -3_650 * 86_400)

# More than is retained, and less than a token's lifetime: servers go on to take clients.
START_STEPS_S = (-1_200, 1_200, 2_400)
# Others than the servers': if both were wrong alike, nobody could tell.
COORDINATOR_START_STEPS_S = (-1_800, -600, 600, 1_800)
RETENTION_AGE_S = 300

CERTIFICATE_LIFE_S = 6
RENEWAL_STEPS_S = (-3 * 86_400, -3_600, -4, 4, 8, 3_600)


def clock_steps(trial: Trial) -> None:
    """Several processes' clocks step, forth and back."""
    names = [*trial.fleet.names, COORDINATOR]
    for _ in range(4):
        name = trial.random.choice(names)
        step_s = trial.random.choice(STEPS_S)
        trial.has_stepped.add(name)
        trial.fleet.set_clock(name, step_s)
        trial.say(f"clock of {name}: {step_s:+d} s")
        trial.pause(0.5, 1.5)
    if trial.random.random() < 0.5:
        group = trial.group()
        trial.kill(trial.head(group), why=f"head of {group}, while clocks differ")
        trial.pause(2, 3)


def clock_far(trial: Trial) -> None:
    group = trial.group()
    victim = trial.random.choice([trial.head(group), trial.member(group), COORDINATOR])
    step_s = trial.random.choice(FAR_STEPS_S)
    trial.has_stepped.add(victim)
    trial.fleet.set_clock(victim, step_s)
    trial.say(f"clock of {victim}: {step_s:+d} s")
    trial.pause(4, 6)


def clock_at_start(trial: Trial) -> None:
    """All servers, then a head, then the coordinator find other wall clocks when they start. A head looks at ages
    within a tenth of a second, before anybody could set its clock right. All that it trims for its age here is young.
    It cannot be read back then."""
    _start_with_other_clocks(trial, trial.fleet.names)
    trial.pause(3, 4)
    _start_with_other_clocks(trial, [trial.head(DISK)])
    trial.pause(2, 3)
    _start_with_other_clocks(trial, [COORDINATOR])
    trial.pause(2, 3)


def _start_with_other_clocks(trial: Trial, names: list[str]) -> None:
    trial.kill(*names, why="their clocks are wrong when they start")
    for name in names:
        step_s = trial.random.choice(COORDINATOR_START_STEPS_S if name == COORDINATOR else START_STEPS_S)
        trial.has_stepped.add(name)
        trial.fleet.set_clock(name, step_s)
        trial.say(f"clock of {name}: {step_s:+d} s")
    for name in names:
        if name == COORDINATOR:
            trial.fleet.start_coordinator()
        else:
            trial.fleet.launch_server(name)


def clock_renewals(trial: Trial) -> None:
    """Certificates end within seconds, so each is renewed again and again while clocks step. They step to before it
    begins, to after it has ended, and by as little as its lifetime. A link that breaks meanwhile must be restored."""
    names = [*trial.fleet.names, COORDINATOR]
    for _ in range(5):
        name = trial.random.choice(names)
        step_s = trial.random.choice(RENEWAL_STEPS_S)
        trial.has_stepped.add(name)
        trial.fleet.set_clock(name, step_s)
        trial.say(f"clock of {name}: {step_s:+d} s")
        trial.pause(0.5, CERTIFICATE_LIFE_S / 2)
        if trial.random.random() < 0.4:
            group = trial.group()
            first, second = trial.fleet.chain(group)[:2]
            trial.fleet.network.block(second, [first])
            trial.say(f"partition {first} – {second} (of {group}) for longer than their connections last")
            trial.pause(3.2, 3.6)
            trial.fleet.network.unblock()
            trial.say("unblock")


FAULTS = [
    Fault("clock_steps", "wall clocks step by seconds to a day", clock_steps, Shape(clocks=True)),
    Fault("clock_far", "a wall clock steps beyond the lifetime of tokens", clock_far, Shape(clocks=True)),
    Fault(
        "clock_at_start",
        "processes start with wrong wall clocks, while entries are retained by age",
        clock_at_start,
        Shape(clocks=True, retention_age_s=RETENTION_AGE_S),
        may_lose=frozenset({MEMORY}),
        more_s=6.0,
    ),
    Fault(
        "clock_renewals",
        "clocks step while certificates are renewed",
        clock_renewals,
        Shape(clocks=True, certificate_life_s=CERTIFICATE_LIFE_S),
        more_s=20.0,
    ),
]
