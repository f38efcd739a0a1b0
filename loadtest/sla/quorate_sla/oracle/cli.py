"""`make sla-oracle`: whether the SLA calculator judges simulated months as a brute-force oracle does.

Exits 0 only without a difference. An interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from quorate_harness.figures import FOLDER, Figure, keep
from quorate_local.display import Display
from quorate_sla.oracle import compare, reports, service, truth
from quorate_sla.oracle.life import BEGIN_MS, Life
from quorate_sla.oracle.progress import Chunk, Progress, summed

COMMAND = "make sla-oracle"
MONTHS = 100_000
MONTHS_KEPT_MIN = 10_000  # fewer are a trial, and leave no figure
CHUNK = 100
SHOWN_MAX = 10
PROGRESS_S = 2.0
PROGRESS = FOLDER.parent / "sla-oracle.jsonl"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-sla-oracle", description=__doc__)
    parser.add_argument("--months", type=int, default=MONTHS, help="how many, from seed 0 on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--seed", type=int, help="show one month, and how it is judged")
    chosen = parser.parse_args(arguments)
    if chosen.seed is not None:
        return _show(chosen.seed)
    if chosen.months < 1 or chosen.jobs < 1:
        parser.error("--months and --jobs must be at least 1")
    return _compare(chosen.months, chosen.jobs)


def _compare(months: int, jobs: int) -> int:
    display = Display()
    begun, told = time.monotonic(), time.monotonic()
    progress = Progress(PROGRESS)
    known = progress.known()
    wanted = list(_chunks(months))
    chunks = [known[seeds.start, len(seeds)] for seeds in wanted if (seeds.start, len(seeds)) in known]
    left = [seeds for seeds in wanted if (seeds.start, len(seeds)) not in known]
    done = before = sum(chunk.count for chunk in chunks)
    if before:
        display.line(f"  {before} of {months} months were judged by an earlier run of the same code")
    with ProcessPoolExecutor(jobs) as pool:
        for chunk in pool.map(_chunk, left):
            progress.keep(chunk)
            chunks.append(chunk)
            done += chunk.count
            for seed, differences in list(chunk.differences.items())[:SHOWN_MAX]:
                display.line(f"  seed {seed}: {differences[0]}")
            if time.monotonic() - told > PROGRESS_S:
                told = time.monotonic()
                left_s = (told - begun) / (done - before) * (months - done)
                display.line(f"  {done} of {months} months, {len(summed(chunks)[0])} differ, {left_s:.0f} s left")
    different, kinds = summed(chunks)
    display.line(", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    figure = Figure("sla_oracle_disagreements", len(different), f"months of {months}", 0)
    if months >= MONTHS_KEPT_MIN:
        keep([figure], COMMAND, FOLDER / "sla.jsonl")
    text = "none differs" if figure.met else f"{len(different)} differ; see one with --seed {min(different)}"
    display.line(
        f"{months} months judged twice, {done - before} of them now in {time.monotonic() - begun:.0f} s: {text}."
    )
    return 0 if figure.met else 1


def _chunks(months: int) -> Iterator[range]:
    for first in range(0, months, CHUNK):
        yield range(first, min(months, first + CHUNK))


def _chunk(seeds: range) -> Chunk:
    differences, kinds = {}, Counter[str]()
    for seed in seeds:
        found = compare.disagreements(seed)
        if found:
            differences[seed] = found
        kinds.update(_kinds(compare.live(seed)))
    return Chunk(seeds.start, len(seeds), differences, dict(kinds))


def _kinds(life: Life) -> set[str]:
    reigns = life.reigns
    facts = {
        "months": True,
        "with several heads": len(reigns) > 1,
        "with a crash": any(reign.crashes for reign in reigns),
        "with a former head": any(reign.haunts_ms for reign in reigns),
        "with a stalled chain": any(each.kind == "chain" for reign in reigns for each in reign.outages),
        "with a halted process": any(each.kind == "process" for reign in reigns for each in reign.outages),
        "with lost telemetry": bool(life.lost),
        "with a resize": len(life.bounds) > 1,
        "with a declaration": bool(life.declarations),
        "with probers": bool(life.probers),
        "with cuts from outside": any(prober.failed for prober in life.probers),
        "deleted": life.deleted_ms is not None,
    }
    return {kind for kind, holds in facts.items() if holds}


def _show(seed: int) -> int:
    life = compare.live(seed)
    verdict = truth.judge(life, service.serve(life), reports.heard(life))
    write = sys.stdout.write

    def at(ms: int) -> str:
        return f"{(ms - BEGIN_MS) / 1_000:.2f} s"

    write(f"{life.durability}, {life.rate_per_s}/s, active from {at(life.active_ms)} to {at(life.end_ms)}\n")
    for reign in life.reigns:
        ends = "crashes" if reign.crashes else "ends"
        write(f"head {reign.server} of epoch {reign.epoch} from {at(reign.from_ms)}, {ends} {at(reign.to_ms)}\n")
        for outage in reign.outages:
            write(f"  {outage.kind} away from {at(outage.from_ms)} to {at(outage.to_ms)}\n")
    for prober in life.probers:
        watches = ", ".join(map(str, sorted(prober.watches)))
        write(f"prober {prober.name} watches {watches}; it is silent in minutes {sorted(prober.silent)}\n")
        for server, from_ms, to_ms in prober.failed:
            write(f"  server {server} does not answer from {at(from_ms)} to {at(to_ms)}\n")
    for minute in verdict.minutes:
        bad = ", ".join(sorted(minute.bad)) or "good"
        write(f"minute {minute.number}: {minute.active_ms} of {minute.elapsed_ms} ms active; {bad}\n")
    write(f"credits: {dict(verdict.credits)}, together {verdict.credit_percent} %\n")
    differences = compare.disagreements(seed)
    for difference in differences:
        write(f"differs: {difference}\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
