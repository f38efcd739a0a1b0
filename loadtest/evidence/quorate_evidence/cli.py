"""`quorate-evidence`: what published evidence speaks for, and how to have it anew."""

from __future__ import annotations

import argparse
import signal
import sys

from quorate_evidence import run, status
from quorate_harness.evidence import subjects
from quorate_local.display import Display


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-evidence", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    told = commands.add_parser("status", help="whether each subject's evidence speaks for the present sources")
    told.add_argument("--strict", action="store_true", help="exit with 1 when some of it does not")
    digest = commands.add_parser("source", help="the digest of a subject's sources")
    digest.add_argument("subject", choices=list(subjects()))
    again = commands.add_parser("run", help="measure what is older than its sources, and publish it")
    again.add_argument("--only", action="append", choices=list(subjects()), metavar="SUBJECT", help="repeatable")
    again.add_argument("--all", action="store_true", help="also what speaks for the present sources")
    chosen = parser.parse_args(arguments)
    display = Display()
    if chosen.command == "source":
        print(subjects()[chosen.subject].source())
        return 0
    found = status.statuses()
    if chosen.command == "status":
        for line in status.text(found):
            display.line(line)
        return int(chosen.strict and any(not one.is_fresh for one in found))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended then too
    wanted = [one for one in found if not chosen.only or one.subject.name in chosen.only]
    try:
        return run.run([one for one in wanted if chosen.all or not one.is_fresh], display, anew=chosen.all)
    except KeyboardInterrupt:
        display.line("\nInterrupted. What was published stays; the next run goes on behind it.")
        return 130


if __name__ == "__main__":
    sys.exit(main())
