"""One run, inside its namespaces: a fleet, a load, a fault, healing, reading back, judging.

`python -m quorate_chaos.run FAULT SEED FOLDER [LOAD_S [DEGREE]]` writes FOLDER/run.json. It ends with 0 when the run
is clean.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from quorate_chaos import load
from quorate_chaos.coordinators import Unready
from quorate_chaos.faults import FAULTS, MUST_BE_FOUND
from quorate_chaos.fleet import DURABILITY, Fleet
from quorate_chaos.power import Unseen
from quorate_chaos.trial import Fault, Trial
from quorate_local.layout import write_json
from quorate_local.native import CannotCompile
from quorate_local.process import ProcessFailed

LOAD_S = 16.0  # longer with longer faults
CROWDED = 0.3  # of the runs have dozens of groups
BEFORE_S = 2.5
AFTER_S = 2.0
READY_S = 20.0
HEAL_S = 45.0  # everything must be whole by then


@dataclass
class Outcome:
    """`trouble`: the reasons why a run is not clean besides the checker's findings in `groups`."""

    fault: str
    seed: int
    degree: int
    clean: bool = False
    seconds: float = 0.0
    healed_s: float = 0.0
    lost: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""


def run(
    fault: Fault, seed: int, folder: Path, load_s: float, tell: Callable[[str], None], degree: int | None = None
) -> Outcome:
    """Run in `folder`, which is created again. `degree`: of its groups, if the seed is not to choose it."""
    choice = random.Random(f"{fault.name} {seed}")
    chosen = choice.choice(fault.degrees)
    degree = degree or chosen
    servers = max(fault.shape.servers, degree + 1)
    # Half of these run without TLS: servers then write at other moments, with no other difference.
    plaintext = fault.shape.power and choice.random() < 0.5
    has_crowd = choice.random() < CROWDED
    shape = replace(fault.shape, degree=degree, servers=servers, plaintext=plaintext, has_crowd=has_crowd)
    outcome = Outcome(fault.name, seed, degree)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    begun = time.monotonic()
    fleet = Fleet(folder, shape)
    trial = Trial(fleet, choice, tell)
    trial.say(f"links: {'plaintext' if plaintext else 'TLS'}; groups: {len(fleet.groups)}")
    try:
        fleet.start()
        fleet.create_groups(READY_S)
        _try(fault, load_s, trial, folder, outcome)
    except (Unready, ProcessFailed, load.LoadFailed, Unseen, CannotCompile, OSError) as error:
        outcome.trouble.append(f"{type(error).__name__}: {error}")
    except Exception:
        outcome.trouble.append(traceback.format_exc())
    finally:
        trial.notice_crashes()
        outcome.trouble += trial.crashes + trial.findings
        outcome.trouble += fleet.panics()
        fleet.stop()
    start_ns = trial.events[0].at_ns if trial.events else 0
    outcome.events = [f"{(event.at_ns - start_ns) / 1e9:+.2f} s  {event.text}" for event in trial.events]
    outcome.seconds = round(time.monotonic() - begun, 1)
    outcome.clean = not outcome.trouble and bool(outcome.groups) and all(group["clean"] for group in outcome.groups)
    write_json(folder / "run.json", asdict(outcome))
    return outcome


def _try(fault: Fault, load_s: float, trial: Trial, folder: Path, outcome: Outcome) -> None:
    fleet, seed = trial.fleet, outcome.seed
    history, beside = folder / "history.jsonl", folder / "crowd.jsonl"
    seconds, entry_bytes = load_s + fault.more_s, fault.shape.entry_bytes
    loads = [load.Load(fleet, DURABILITY, history, seconds, seed, entry_bytes)]
    if fleet.crowd:
        first = load.CROWD_FIRST_CLIENT
        loads.append(load.Load(fleet, fleet.crowd, beside, seconds, seed, entry_bytes, first, True, is_second=True))
    for one in loads:
        one.start()
    time.sleep(BEFORE_S)
    trial.say(f"groups: {', '.join(f'{name} on {fleet.chain(name)}' for name in fleet.groups)}")
    try:
        fault.act(trial)
        trial.heal()
        lost = _wait_whole(fleet, fault, outcome)
        time.sleep(AFTER_S)
    finally:
        for one in loads:
            one.wait()
    outcome.lost = sorted(lost)
    trial.say(f"whole after {outcome.healed_s} s" + (f"; lost: {', '.join(sorted(lost))}" if lost else ""))
    kept = [name for name in fleet.groups if name not in lost]
    fleet.write_handles()
    again = folder / "again.jsonl"
    first = load.RECOVERED_FIRST_CLIENT
    recovered = load.Load(fleet, fleet.groups, again, load.RECOVERED_S, seed + 1, 64, first, bool(fleet.crowd))
    recovered.start()
    recovered.wait()
    with history.open("ab") as out:
        for more in [*([beside] if fleet.crowd else []), again]:
            out.write(more.read_bytes())
    fleet.write_handles()
    load.read_back(fleet, kept, history)
    _, outcome.groups, outcome.text = load.check(history, lost, folder)
    for group in outcome.groups:
        gap_ms = group["longest_gap_ms"]
        if fault.gap_ms_max and gap_ms > fault.gap_ms_max:
            outcome.trouble.append(f"{group['group']} stood still for {gap_ms} ms; at most {fault.gap_ms_max}")
    acked = _acked_again(again)
    outcome.trouble += [f"{name} takes no appends although it is whole" for name in kept if not acked.get(name)]
    outcome.trouble += [f"{name} is lost and took appends" for name in lost if acked.get(name)]


def _wait_whole(fleet: Fleet, fault: Fault, outcome: Outcome) -> set[str]:
    """The names of lost groups. A group that does not become whole is an error; its contents are judged still."""
    healing = time.monotonic()
    try:
        lost = fleet.wait_whole(HEAL_S, fault.may_lose)
    except Unready as unready:
        outcome.trouble.append(f"Not whole {unready}")
        lost = set()
    outcome.healed_s = round(time.monotonic() - healing, 1)
    return lost


def _acked_again(path: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in path.read_text().splitlines():
        event = json.loads(line)
        if event.get("outcome") == "acked":
            counts[event["group"]] = counts.get(event["group"], 0) + 1
    return counts


def main() -> int:
    name, seed, folder, *more = sys.argv[1:]
    load_s = float(more[0]) if more else LOAD_S
    degree = int(more[1]) if len(more) > 1 else None
    fault = {**FAULTS, **MUST_BE_FOUND}[name]
    outcome = run(fault, int(seed), Path(folder), load_s, lambda text: print(f"        {text}", flush=True), degree)
    for line in outcome.trouble:
        print(line)
    print(outcome.text)
    return 0 if outcome.clean else 1


if __name__ == "__main__":
    sys.exit(main())
