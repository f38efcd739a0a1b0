"""The parts of `make test`, in the order they run: long parts first, so that lanes end together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from quorate_checks import failures, rust_build
from quorate_checks.commands import PULUMI_PYTHON, Command, Finished
from quorate_checks.counts import Counts, of_chaos, of_go_test, of_junit, of_libtest
from quorate_local.options import REPOSITORY

REPORTS = REPOSITORY / "build" / "test"
EXIT_TESTS_FAILED = 1  # as pytest answers


class Lane(Enum):
    """Lanes run side by side, each its parts in order. A lane that has no more takes parts of `ANY`.

    Stacks measure time: the other lanes yield to them.
    """

    RUST = auto()  # all cores, now and then
    STACKS = auto()  # whole stacks, one at a time
    ANY = auto()  # waits, or has one thread


@dataclass(frozen=True)
class Part:
    """`group` is what `--only` chooses by. `count` reads the runner's own report.

    `only_failed`: further arguments by which a second run is of the failed tests alone. None: it runs the whole part.
    """

    name: str
    group: str
    command: Command
    count: Callable[[Finished], Counts | None]
    lane: Lane = Lane.ANY
    repeats: bool = True  # False where inputs are random: a second run would not meet what the first one found
    only_failed: Callable[[Finished], list[str]] = lambda _: []


def report_of(name: str) -> Path:
    """The path of a part's JUnit file, if its runner writes one."""
    return REPORTS / f"{name}.xml"


def _count_junit(name: str) -> Callable[[Finished], Counts | None]:
    return lambda _: of_junit(report_of(name))


def pytest(name: str, group: str, folder: str, *arguments: str, timeout_s: float = 300, lane: Lane = Lane.ANY) -> Part:
    argv = ["pytest", f"--junitxml={report_of(name)}", "-o", f"cache_dir={REPORTS / name}.cache", *arguments]
    command = Command(argv, folder, f"{folder}/pyproject.toml", timeout_s=timeout_s)
    return Part(name, group, command, _count_junit(name), lane, only_failed=_only_failed_of_pytest)


def _only_failed_of_pytest(finished: Finished) -> list[str]:
    """After any other end than failed tests, its cache may not know all of them."""
    return ["--last-failed"] if finished.exit_code == EXIT_TESTS_FAILED else []


def _only_failed_of_rust(finished: Finished) -> list[str]:
    names = failures.names_of_libtest(finished.output())
    return ["--", "--exact", *names] if names else []


def _vitest(name: str, folder: str) -> Part:
    reporters = ["--reporter=default", "--reporter=junit", f"--outputFile.junit={report_of(name)}"]
    command = Command(
        ["npx", "--no-install", "vitest", "run", *reporters], folder, f"{folder}/package.json", timeout_s=300
    )
    return Part(name, "unit", command, _count_junit(name))


def _node_test(name: str, folder: str) -> Part:
    """`npm test` with node's own runner. Arguments after `--` go to it as further reporters."""
    reporters = ["--test-reporter=junit", f"--test-reporter-destination={report_of(name)}"]
    argv = ["npm", "test", "--silent", "--", *reporters]
    return Part(name, "unit", Command(argv, folder, f"{folder}/package.json", timeout_s=300), _count_junit(name))


def _playwright(name: str, group: str, project: str, around: list[str], timeout_s: float, lane: Lane) -> Part:
    """`around`: a command that runs the rest of its arguments, with a stack to talk to, say."""
    argv = ["npx", "--no-install", "playwright", "test", f"--project={project}", "--reporter=list,junit"]
    env = {"PLAYWRIGHT_JUNIT_OUTPUT_FILE": str(report_of(name))}
    command = Command([*around, *argv], "portal", "portal/package.json", env, timeout_s)
    return Part(name, group, command, _count_junit(name), lane)


def _terraform_provider(name: str, folder: str) -> Part:
    # Without a configuration file of the machine's own: the provider is the one in the test's process.
    env = {"TF_ACC": "1", "CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": "/dev/null"}
    command = Command(["go", "test", "-count=1", "-v", "./..."], folder, f"{folder}/go.mod", env=env)
    return Part(name, "infra", command, lambda finished: of_go_test(finished.output()))


WITH_STACK = ["quorate-local", "run", "--state", str(REPOSITORY / "build" / "e2e" / "portal"), "--"]

PARTS = [
    Part(
        "rust",
        "unit",
        Command(
            ["cargo", "test", *rust_build.FLAGS, "--no-fail-fast"],
            "services",
            "services/Cargo.toml",
            rust_build.ENV,
            timeout_s=2100,
        ),
        lambda finished: of_libtest(finished.output()),
        Lane.RUST,
        only_failed=_only_failed_of_rust,
    ),
    Part(
        "fuzz",
        "unit",
        Command(["quorate-checks", "fuzz", "--replay"], needs="services/verify/fuzz/Cargo.toml", timeout_s=1500),
        lambda finished: of_libtest(finished.output()),
        Lane.RUST,
    ),
    pytest("e2e", "e2e", "infra/e2e", timeout_s=2400, lane=Lane.STACKS),
    Part(
        "chaos",
        "e2e",
        Command(["quorate-chaos", "--short"], needs="loadtest/chaos/pyproject.toml", timeout_s=300),
        lambda finished: of_chaos(finished.output()),
        Lane.STACKS,
        repeats=False,
    ),
    _playwright("portal journey", "e2e", "stack", WITH_STACK, 600, Lane.STACKS),
    pytest("api", "unit", "services/api", timeout_s=2400),
    _terraform_provider("terraform provider", "infra/terraform/provider"),
    pytest("terraform modules", "infra", "infra/terraform/offline", timeout_s=600),
    _playwright("portal mock", "unit", "mock", [], 900, Lane.ANY),
    pytest("sdk python", "unit", "sdk/python"),
    _node_test("sdk js", "sdk/js"),
    Part(
        "pulumi",
        "infra",
        Command(
            [str(PULUMI_PYTHON), "-m", "pytest", f"--junitxml={report_of('pulumi')}"],
            "infra/pulumi",
            "infra/pulumi/pyproject.toml",
            timeout_s=300,
        ),
        _count_junit("pulumi"),
    ),
    _vitest("portal", "portal"),
    pytest("papers", "unit", "loadtest/papers"),
    _terraform_provider("terraform provider local", "infra/terraform/provider-local"),
    pytest("prober", "unit", "services/prober"),
    pytest("local stack", "unit", "infra/local"),
    pytest("checks", "unit", "infra/checks", "tests"),
    pytest("observability", "infra", "infra/observability"),
    pytest("harness", "unit", "loadtest/harness"),
    pytest("demo", "unit", "loadtest/demo"),
    pytest("bench", "unit", "loadtest/bench"),
    pytest("claims", "unit", "loadtest/claims"),
    pytest("sla", "unit", "loadtest/sla"),
    pytest("scale", "unit", "loadtest/scale"),
    pytest("profile", "unit", "loadtest/profile"),
    pytest("evidence", "unit", "loadtest/evidence"),
    pytest("chaos runner", "unit", "loadtest/chaos"),
    Part(
        "chaos checker",
        "unit",
        Command(["go", "test", "-count=1", "-v", "./..."], "loadtest/chaos/check", "loadtest/chaos/check/go.mod"),
        lambda finished: of_go_test(finished.output()),
    ),
    pytest("peers", "unit", "loadtest/peers"),
    Part(
        "peers' window",
        "unit",
        # The packages beside it need every peer's own libraries.
        Command(["go", "test", "-count=1", "-v", "./window"], "loadtest/peers/go", "loadtest/peers/go/go.mod"),
        lambda finished: of_go_test(finished.output()),
    ),
]
