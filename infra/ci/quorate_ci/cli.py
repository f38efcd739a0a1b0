"""`quorate-ci test|verify|fix|gen|error-pages`: what the Makefile calls."""

from __future__ import annotations

import argparse
import sys

from quorate_ci import error_pages, suite, verify
from quorate_local.display import Display


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-ci", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    tests = commands.add_parser("test", help="every check and test")
    tests.add_argument("--only", help="one group (unit, e2e) or one part by name")
    commands.add_parser("verify", help="the checks; changes nothing")
    commands.add_parser("fix", help="rewrite what can be mended")
    commands.add_parser("gen", help="write generated files again")
    pages = commands.add_parser("error-pages", help="docs/operating/errors from sdk/contract/errors.json")
    pages.add_argument("--check", action="store_true", help="only compare")
    chosen = parser.parse_args(arguments)
    display = Display()
    if chosen.command == "error-pages":
        return error_pages.main(check=chosen.check)
    if chosen.command == "verify":
        counts = verify.verify(display)
        display.line(f"\n{counts.passed} passed, {counts.failed} failed")
        return int(counts.failed > 0)
    actions = {
        "test": lambda: suite.test(display, chosen.only),
        "fix": lambda: verify.fix(display),
        "gen": lambda: verify.gen(display),
    }
    return int(not actions[chosen.command]())


if __name__ == "__main__":
    sys.exit(main())
