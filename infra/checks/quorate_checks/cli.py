"""`quorate-checks COMMAND`: the commands behind the Makefile and the checks."""

from __future__ import annotations

import argparse
import sys

from quorate_checks import error_pages, fuzz, model, rule_copies, rust_build, suite, verify
from quorate_checks.cycles import command as cycles
from quorate_checks.language import command as language
from quorate_checks.parts import PARTS
from quorate_local.display import Display


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-checks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    tests = commands.add_parser("test", help="every check and test")
    names = [*dict.fromkeys(part.group for part in PARTS), *(part.name for part in PARTS)]
    tests.add_argument("--only", choices=names, metavar="NAME", help=f"a group or a part: {', '.join(names)}")
    commands.add_parser("verify", help="the checks; changes nothing")
    commands.add_parser("fix", help="rewrite what can be mended")
    commands.add_parser("gen", help="write generated files again")
    pages = commands.add_parser("error-pages", help="docs/operating/errors from sdk/contract/errors.json")
    pages.add_argument("--check", action="store_true", help="only compare")
    fuzzing = commands.add_parser("fuzz", help="run every fuzz target")
    how = fuzzing.add_mutually_exclusive_group(required=True)
    how.add_argument("--seconds", type=int, help="search, for each target so long")
    how.add_argument("--replay", action="store_true", help="try the seeds, and earlier findings")
    fuzzing.add_argument("--keep", action="store_true", help="keep the executions as figures")
    commands.add_parser("rust-lints", help="lints of the build that the tests run")
    commands.add_parser("model", help="explore the large worlds of the model")
    language.add_arguments(commands.add_parser("language", help="how sentences of comments and docs open and how long"))
    cycles.add_arguments(commands.add_parser("cycles", help="modules that import one another"))
    rule_copies.add_arguments(commands.add_parser("rule-copies", help="rules of the group that the simulator copies"))
    chosen = parser.parse_args(arguments)
    display = Display()
    if chosen.command == "fuzz":
        return fuzz.replay(display) if chosen.replay else fuzz.search(display, chosen.seconds, chosen.keep)
    if chosen.command == "rust-lints":
        return rust_build.lint(display)
    if chosen.command == "model":
        return model.explore(display)
    if chosen.command == "language":
        return language.main(display, chosen)
    if chosen.command == "cycles":
        return cycles.main(display, chosen)
    if chosen.command == "rule-copies":
        return rule_copies.main(display, chosen)
    if chosen.command == "error-pages":
        return error_pages.main(check=chosen.check)
    if chosen.command == "verify":
        counts = verify.verify(display, [], lambda _title, _seconds: None)
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
