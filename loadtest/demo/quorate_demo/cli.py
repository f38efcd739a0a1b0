"""`make demo`: two customers, a real day of traffic, a server killed, every entry and the bill checked.

Exits 0 only if every check in `report.py` held. Writes `build/demo.json`, and of a whole day its figures to
`build/figures/demo.jsonl`.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quorate_demo.entries import ENTRY_BYTES
from quorate_demo.measure import Batch, acked_runs, failover_gap_ms, latency, rate_per_s
from quorate_demo.program import ProgramFailed
from quorate_demo.replaying import Replaying, Tenant
from quorate_demo.report import GroupOutcome, Outcome, money
from quorate_demo.trace import MINUTES_PER_DAY, Schedule, busiest_stretch, load_day
from quorate_demo.verdict import Run, judge
from quorate_harness.customer import Customer, Refused, billed_entries
from quorate_harness.figures import FOLDER as FIGURES
from quorate_harness.figures import keep
from quorate_local import ProcessFailed, Stack, StackOptions
from quorate_local.display import Display
from quorate_local.layout import write_json
from quorate_local.options import REPOSITORY, BadOptions

DAY = 15
DAY_SECONDS = 45.0  # the whole day; fewer seconds replay a shorter period at the same pace
SECONDS_MIN = 4.0
RESERVE = 1.5  # reserved rate over the trace's peak: room to catch up after the failover
RATE_STEP_PER_S = 1_000
ABSURD_RATE_PER_S = 50_000_000
SETTLE_TIMEOUT_S = 30.0
SETTLE_POLL_S = 0.25
STEADY_AFTER_KILL_US = 5_000_000
CUSTOMERS = [  # organization, durability, written with, read back with
    ("stade-de-france", "persistent", "python", "typescript"),
    ("parc-des-princes", "in_memory", "typescript", "python"),
]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-demo", description=__doc__)
    parser.add_argument("--seconds", type=float, default=DAY_SECONDS, help="length of the replay (default %(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave the stack running at the end")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "demo", help="state and logs")
    parser.add_argument("--json", type=Path, default=REPOSITORY / "build" / "demo.json", help="the result")
    chosen = parser.parse_args(arguments)
    if not SECONDS_MIN <= chosen.seconds <= DAY_SECONDS:
        parser.error(f"the replay may last {SECONDS_MIN:.0f} to {DAY_SECONDS:.0f} seconds, not {chosen.seconds}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the stack is stopped then too
    display = Display()
    try:
        outcome = run(chosen.seconds, chosen.keep, chosen.folder, display)
    except (BadOptions, ProcessFailed, ProgramFailed, Refused, TimeoutError) as error:
        display.line(f"\nThe demo could not be finished.\n{error}")
        return 1
    except KeyboardInterrupt:
        display.line("\nInterrupted; the stack is stopped.")
        return 130
    write_json(chosen.json, outcome.to_json())
    if chosen.seconds == DAY_SECONDS:  # a shorter replay is another measurement
        keep(outcome.figures(), "make demo", FIGURES / "demo.jsonl")
    display.line(f"\n{'Every check held.' if outcome.passed else 'A CHECK FAILED.'} {_short(chosen.json)} has it all.")
    return 0 if outcome.passed else 1


def run(seconds: float, keep: bool, folder: Path, display: Display) -> Outcome:
    """The whole story, on a fresh stack in `folder`."""
    begun = time.monotonic()
    schedule = _schedule(seconds)
    folder.mkdir(parents=True, exist_ok=True)
    stack = Stack(StackOptions.from_environment(state=folder / "state"), display)
    stack.wipe()  # remove state of an earlier demo, also of one that was kept or interrupted
    what = f"day {DAY}" if seconds == DAY_SECONDS else f"a part of day {DAY}"
    display.line(f"{schedule.total:,} requests of the 1998 World Cup web site ({what}) through each of two logs")
    display.line(f"\nStarting the stack in {_short(folder / 'state')}")
    finished = False
    try:
        stack.start()
        outcome = _tell_the_story(stack, schedule, folder, display, begun)
        finished = True
    finally:
        if not (keep and finished):
            display.line("\nStopping")
            stack.stop()
    if keep:
        stack.restart_server(outcome.killed_server)
        display.line(f"\n  The stack is still up. Portal: {outcome.portal_url}")
        display.line(f"  Stop it with: make down STATE={_short(folder / 'state')}")
    else:
        display.line("\n  `make demo KEEP=1` leaves it running, to look around in the portal.")
    return outcome


def _tell_the_story(stack: Stack, schedule: Schedule, folder: Path, display: Display, begun: float) -> Outcome:
    started_at = datetime.now(UTC)
    display.line(f"  portal        {stack.api_url}")
    display.line("\nCustomers")
    tenants = [_sign_up(stack, schedule, *customer, display) for customer in CUSTOMERS]
    refusal = _ask_for_the_absurd(tenants[0].customer, display)
    display.line(f"\nReplaying in {schedule.seconds:.0f} s, up to {schedule.peak_per_s:,.0f} appends/s each")
    replaying = Replaying(stack, tenants, DAY, schedule, folder)
    replaying.run(display)
    display.line("  written; reading both logs back, each with the other SDK")
    replaying.read_back(display)
    display.line("  waiting for usage to reach the bill")
    groups = [_outcome_of(tenant, replaying, schedule, started_at, display) for tenant in tenants]
    replaying.look_at_servers()
    outcome = Outcome(
        groups=groups,
        refusal=refusal,
        killed_server=replaying.killed_server,
        server_memory_bytes=replaying.memory_bytes,
        died=sorted(replaying.died),
        seconds=time.monotonic() - begun,
        portal_url=stack.api_url,
    )
    display.line("\nWhat happened")
    for line in outcome.lines():
        display.line(line)
    for tenant in tenants:
        display.line(f"  log in as {tenant.customer.email}, password {tenant.customer.password}")
        tenant.customer.close()
    return outcome


def _schedule(seconds: float) -> Schedule:
    """The whole day, or its busiest period at the same pace."""
    requests = load_day(DAY)
    minutes = max(1, round(MINUTES_PER_DAY * seconds / DAY_SECONDS))
    first = busiest_stretch(requests, minutes)
    return Schedule(first, requests[first : first + minutes], seconds)


def _sign_up(
    stack: Stack, schedule: Schedule, name: str, durability: str, writer: str, reader: str, display: Display
) -> Tenant:
    customer = Customer(stack.api_url, name)
    sla = _sla(durability, math.ceil(schedule.peak_per_s * RESERVE / RATE_STEP_PER_S) * RATE_STEP_PER_S)
    group = customer.create_group("requests", sla)
    tenant = Tenant(customer, group, durability, writer, reader)
    servers = stack.servers_by_address()
    ring = " → ".join(servers[replica["address"]] for replica in customer.placement(group["id"])["replicas"])
    price = group["price"]
    display.line(
        f"  {name:<18}{durability.replace('_', '-'):<12}degree 3   {sla['rate_per_s']:,} appends/s   "
        f"{ring}   {money(price['monthly_micros'], price['currency'])} a month"
    )
    return tenant


def _ask_for_the_absurd(customer: Customer, display: Display) -> dict[str, Any] | None:
    """Ask for more than there is; the answer must be a refusal that says why."""
    try:
        customer.create_group("everything", _sla("persistent", ABSURD_RATE_PER_S))
    except Refused as refused:
        refusal: dict[str, Any] | None = refused.problem.get("refusal")
        display.line(f"  {ABSURD_RATE_PER_S:,} appends/s: refused. {(refusal or {}).get('message', refused)}")
        return refusal
    return None


def _sla(durability: str, rate_per_s: int) -> dict[str, Any]:
    return {
        "durability": durability,
        "replication_degree": 3,
        "request_size_bytes": ENTRY_BYTES,
        "rate_per_s": rate_per_s,
    }


def _outcome_of(
    tenant: Tenant, replaying: Replaying, schedule: Schedule, started_at: datetime, display: Display
) -> GroupOutcome:
    results = tenant.results
    batches = [Batch(*batch) for batch in results["batches"]]
    verdict = judge(acked_runs(batches), [Run(*run) for run in results["runs"]], results["corrupted"])
    usage_entries = _settled_usage(tenant, verdict.read_back, started_at, display)
    invoice = tenant.customer.settled_invoice(tenant.group["id"], verdict.read_back, SETTLE_TIMEOUT_S)
    failover = range(replaying.kill_us, replaying.kill_us + STEADY_AFTER_KILL_US)
    return GroupOutcome(
        organization=tenant.name,
        durability=tenant.durability,
        writer=tenant.writer,
        reader=tenant.reader,
        was_head_killed=tenant.name in replaying.heads_killed,
        offered=results["offered"],
        refused=sum(count for _, count, _ in results["refused"]),
        unknown=sum(count for _, count, _ in results["unknown"]),
        verdict=verdict,
        usage_entries=usage_entries,
        billed=billed_entries(invoice, tenant.group["id"]),
        rate_per_s=rate_per_s(batches),
        latency=latency(batches, schedule),
        latency_steady=latency(batches, schedule, without_us=failover),
        failover_gap_ms=failover_gap_ms(batches, replaying.kill_us),
        sla=tenant.customer.sla_report(tenant.group["id"]),
        invoice_total_micros=invoice["total_micros"],
        currency=invoice["currency"],
    )


def _settled_usage(tenant: Tenant, expected: int, started_at: datetime, display: Display) -> int:
    """Metered entries, once they are as many as the log holds, or when the time for that is over."""
    since = started_at.replace(second=0, microsecond=0)
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while True:
        metered = int(tenant.customer.usage(tenant.group["id"], since)["committed_entries"])
        if metered == expected or time.monotonic() > deadline:
            return metered
        display.progress(f"  {tenant.name}: {metered:,} of {expected:,} metered")
        time.sleep(SETTLE_POLL_S)


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    sys.exit(main())
