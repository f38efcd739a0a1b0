"""`make claims`: claims about consensus, measured on real processes on this machine.

Each claim starts servers of its own. Exits 0 only if every goal was met.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx2

from quorate_claims import (
    capacity,
    catchup,
    coordinators,
    failover,
    guarantee,
    holds,
    hung,
    idle,
    migration,
    one_sided,
    partitions,
    read_isolation,
    relief,
    restores,
    space,
    spread_reads,
    stopped,
    syncs,
    upgrade,
)
from quorate_claims.claim import Claim, Conditions
from quorate_harness.customer import Refused
from quorate_harness.figures import FOLDER, Figure, commit, keep, machine, markdown, rewrite, table
from quorate_harness.fleet import MeasurementFailed
from quorate_local import ProcessFailed
from quorate_local.display import Display
from quorate_local.options import REPOSITORY, BadOptions

CLAIMS = [
    Claim("failover", "losing a head under load stops appends for less than a second", failover.measure),
    Claim("coordinators", "losing the leading coordinator stops nothing for more than a second", coordinators.measure),
    Claim("upgrade", "a release is replaced by the next one, and back, without a pause", upgrade.measure),
    Claim("hung", "a server whose disk hangs is out of every chain in seconds, and no other is", hung.measure),
    Claim("relief", "a slow server leaves all groups that can spare a replica at once", relief.measure),
    Claim("restores", "a coordinator on an older copy of its log issues nothing", restores.measure),
    Claim("catchup", "a replacement that learns 1 GB leaves its neighbours their SLA", catchup.measure),
    Claim("syncs", "a persistent append costs the hops plus one sync, whatever the degree", syncs.measure),
    Claim("one-sided", "an append over one-sided writes takes microseconds, no more processor time", one_sided.measure),
    Claim("reads", "reads that are spread avoid a slow replica", spread_reads.measure),
    Claim("read-isolation", "a flood of reads leaves another tenant its reads and appends", read_isolation.measure),
    Claim("capacity", "a server finds out what it can really do, and keeps its promises meanwhile", capacity.measure),
    Claim(
        "partitions",
        "tenants with partitions get fair shares, and many chains cost little more than one",
        partitions.measure,
    ),
    Claim("migration", "replicas move under load, and clients hardly notice", migration.measure),
    Claim("guarantee", "a project's guarantee follows the groups that want it, and no further", guarantee.measure),
    Claim("stopped", "a stopped follower under full load costs bounded memory", stopped.measure),
    Claim("space", "servers full of promises run out of neither memory nor disk", space.measure),
    Claim("idle", "an idle group costs a server little memory", idle.measure),
    Claim("limits", "a server holds fifty thousand groups, a coordinator two hundred thousand replicas", holds.measure),
]
RESULTS = REPOSITORY / "loadtest" / "results"
FAILURES = (
    BadOptions,
    ProcessFailed,
    Refused,
    MeasurementFailed,
    TimeoutError,
    httpx2.HTTPError,
    subprocess.SubprocessError,
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-claims", description=__doc__)
    names = [claim.name for claim in CLAIMS]
    parser.add_argument("--only", metavar="NAME,…", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument(
        "--quick", action="store_true", help="the smallest run that shows whether it works; keeps no figures"
    )
    parser.add_argument("--trials", type=int, help="of a claim that repeats something")
    parser.add_argument("--publish", action="store_true", help="write the results to loadtest/results/ too")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "claims", help="state and logs")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.only.split(",")) - set(names)
    if unknown:
        parser.error(f"there is no claim {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if chosen.trials is not None and not 1 <= chosen.trials <= 1_000:
        parser.error("--trials must be 1 to 1000")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped then too
    display = Display()
    claims = [claim for claim in CLAIMS if claim.name in chosen.only.split(",")]
    try:
        return run(claims, chosen.quick, chosen.trials, chosen.publish, chosen.folder, display)
    except KeyboardInterrupt:
        display.line("\nInterrupted; the servers are stopped.")
        return 130


def run(claims: list[Claim], quick: bool, trials: int | None, publish: bool, folder: Path, display: Display) -> int:
    begun = time.monotonic()
    kept: list[Figure] = []
    failed = []
    for claim in claims:
        display.line(f"\n{claim.name}: {claim.sentence}")
        claim_begun = time.monotonic()
        try:
            figures = claim.measure(Conditions(quick, folder / claim.name, display, trials))
        except FAILURES as error:
            display.line(f"  could not be measured: {error}")
            failed.append(claim.name)
            continue
        display.line(f"  took {time.monotonic() - claim_begun:.0f} s")
        kept += figures
        if not quick:
            keep(figures, f"make claims ONLY={claim.name}", FOLDER / "consensus.jsonl")
    display.line()
    for line in table(kept):
        display.line(line)
    if publish:
        _publish(kept, claims)
    missed = [figure.name for figure in kept if figure.met is False]
    display.line(f"\n{_conclusion(missed, failed)} {time.monotonic() - begun:.0f} s.")
    return 1 if missed or failed else 0


def _publish(figures: list[Figure], claims: list[Claim]) -> None:
    """The run as a file for people and one for programs, which replace those of the same day."""
    name = f"{datetime.now(UTC):%Y-%m-%d}-consensus"
    command = "make claims" if len(claims) == len(CLAIMS) else f"make claims ONLY={','.join(c.name for c in claims)}"
    rewrite(figures, command, RESULTS / f"{name}.jsonl")
    text = [
        f"# Consensus: measured claims, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"`{command}` at commit {commit()}, on {machine()}.",
        "",
        *markdown(figures),
    ]
    (RESULTS / f"{name}.md").write_text("\n".join(text) + "\n")


def _conclusion(missed: list[str], failed: list[str]) -> str:
    parts = []
    if missed:
        parts.append(f"MISSED: {', '.join(missed)}.")
    if failed:
        parts.append(f"Could not be measured: {', '.join(failed)}.")
    return " ".join(parts) or "Every goal was met."


if __name__ == "__main__":
    sys.exit(main())
