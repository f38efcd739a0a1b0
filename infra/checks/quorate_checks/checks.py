"""The checks of `make verify`, what `make fix` does about them, and what `make gen` writes again.

Every check is read-only. A generated file's check compares it with what its generator would write.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate_checks import rust_build
from quorate_checks.commands import PULUMI_PYTHON, Command

PYTHON_FOLDERS = [
    "infra",
    "loadtest",
    "sdk",
    "services/api",
    "services/prober",
    "migrations",
]  # nearest ruff settings win


@dataclass(frozen=True)
class Check:
    """`fix` mends what `check` finds; `gen` writes again what `check` finds stale.

    `tells`: people see its output also when it passes.
    """

    name: str
    check: Command
    fix: Command | None = None
    gen: Command | None = None
    tells: bool = False


def _cargo(*arguments: str) -> Command:
    return Command(["cargo", *arguments], "services", "services/Cargo.toml", timeout_s=1200)


def _npm(folder: str, script: str) -> Command:
    return Command(["npm", "run", "--silent", script], folder, f"{folder}/package.json")


PROVIDER = "infra/terraform/provider"
OFFLINE = "infra/terraform/offline"
STUB = f"{OFFLINE}/stub"
PEERS = "loadtest/peers/go"
PROVIDER_LOCAL = "infra/terraform/provider-local"


def _go(*argv: str, folder: str = "loadtest/chaos/check") -> Command:
    return Command(list(argv), folder, f"{folder}/go.mod")


def _ruff(*arguments: str) -> Command:
    return Command(["ruff", *arguments, *PYTHON_FOLDERS])


def _mypy(folder: str) -> Command:
    return Command(["mypy"], folder, f"{folder}/pyproject.toml")


_CLIPPY = ["clippy", *rust_build.FLAGS, "--all-targets"]
# Checks metadata only: a quarter of the time that a build takes. `make test` builds, with these lints.
RUST_LINTS = Check(
    "Rust lints",
    _cargo(*_CLIPPY, "--quiet", "--", "-D", "warnings"),
    fix=_cargo(*_CLIPPY, "--fix", "--allow-dirty", "--allow-staged"),
)
RUST_LINTS_OF_BUILD = Check("Rust lints", Command(["quorate-checks", "rust-lints"], needs="services", timeout_s=1200))

CHECKS = [
    Check("Rust format", _cargo("fmt", "--all", "--check"), fix=_cargo("fmt", "--all")),
    RUST_LINTS,
    Check("Python format", _ruff("format", "--check"), fix=_ruff("format")),
    Check("Python lints", _ruff("check"), fix=_ruff("check", "--fix")),
    Check("API types", _mypy("services/api")),
    Check("Prober types", _mypy("services/prober")),
    Check("Python SDK types", _mypy("sdk/python")),
    Check("Local stack types", _mypy("infra/local")),
    Check("Checks types", _mypy("infra/checks")),
    Check("Observability types", _mypy("infra/observability")),
    Check(
        "Pulumi types",
        Command(["mypy", "--python-executable", str(PULUMI_PYTHON)], "infra/pulumi", "infra/pulumi/pyproject.toml"),
    ),
    Check("Load test types", _mypy("loadtest")),
    Check(
        "Go format",
        _go("sh", "-c", 'found=$(gofmt -l .); echo "$found"; test -z "$found"'),
        fix=_go("gofmt", "-w", "."),
    ),
    Check("Go lints", _go("go", "vet", "./...")),
    Check(
        "Peers' Go format",
        _go("sh", "-c", 'found=$(gofmt -l .); echo "$found"; test -z "$found"', folder=PEERS),
        fix=_go("gofmt", "-w", ".", folder=PEERS),
    ),
    Check("Peers' window lints", _go("go", "vet", "./window", folder=PEERS)),
    Check(
        "Provider format",
        _go("sh", "-c", 'found=$(gofmt -l .); echo "$found"; test -z "$found"', folder=PROVIDER),
        fix=_go("gofmt", "-w", ".", folder=PROVIDER),
    ),
    Check("Provider lints", _go("go", "vet", "./...", folder=PROVIDER)),
    Check("Terraform checker types", _mypy(OFFLINE)),
    Check(
        "Stub provider format",
        _go("sh", "-c", 'found=$(gofmt -l .); echo "$found"; test -z "$found"', folder=STUB),
        fix=_go("gofmt", "-w", ".", folder=STUB),
    ),
    Check("Stub provider lints", _go("go", "vet", "./...", folder=STUB)),
    Check(
        "Local provider format",
        _go("sh", "-c", 'found=$(gofmt -l .); echo "$found"; test -z "$found"', folder=PROVIDER_LOCAL),
        fix=_go("gofmt", "-w", ".", folder=PROVIDER_LOCAL),
    ),
    Check("Local provider lints", _go("go", "vet", "./...", folder=PROVIDER_LOCAL)),
    Check("Portal lints", _npm("portal", "lint")),
    Check("Portal types", _npm("portal", "typecheck")),
    Check("TypeScript SDK types", _npm("sdk/js", "typecheck")),
    Check(
        "Error tables are fresh",
        Command(["python", "sdk/contract/generate.py", "--check"]),
        gen=Command(["python", "sdk/contract/generate.py"]),
    ),
    Check(
        "Metric names and dashboards are fresh",
        Command(["quorate-observe", "gen", "--check"]),
        gen=Command(["quorate-observe", "gen"]),
    ),
    Check(
        "Frame vectors are fresh",
        Command(["python", "sdk/contract/vectors/generate.py", "--check"]),
        gen=Command(["python", "sdk/contract/vectors/generate.py"]),
    ),
    Check(
        "Latency bucket vectors are fresh",
        Command(["python", "sdk/contract/vectors/generate_latency_buckets.py", "--check"]),
        gen=Command(["python", "sdk/contract/vectors/generate_latency_buckets.py"]),
    ),
    Check(
        "Read window vectors are fresh",
        Command(["python", "sdk/contract/vectors/generate_read_windows.py", "--check"]),
        gen=Command(["python", "sdk/contract/vectors/generate_read_windows.py"]),
    ),
    Check(
        "Partition vectors are fresh",
        Command(["python", "sdk/contract/vectors/generate_partitions.py", "--check"]),
        gen=Command(["python", "sdk/contract/vectors/generate_partitions.py"]),
    ),
    Check(
        "API contract is fresh",
        Command(["quorate-api", "openapi", "--check"]),
        gen=Command(["quorate-api", "openapi"]),
    ),
    Check("Portal's client is fresh", _npm("portal", "gen:check"), gen=_npm("portal", "gen")),  # after the contract
    Check(
        "Provider's client and reference are fresh",  # after the contract, from which they come
        _go("go", "run", "./internal/generate", "-check", folder=PROVIDER),
        gen=_go("go", "run", "./internal/generate", folder=PROVIDER),
    ),
    Check(
        "Terraform's shared files are fresh",
        Command(["python", "-m", "quorate_offline.shared_files", "--check"], OFFLINE),
        gen=Command(["python", "-m", "quorate_offline.shared_files"], OFFLINE),
    ),
    Check(
        "Local provider's reference is fresh",
        _go("go", "run", "./internal/generate", "-check", folder=PROVIDER_LOCAL),
        gen=_go("go", "run", "./internal/generate", folder=PROVIDER_LOCAL),
    ),
    Check(
        "Error pages are fresh",
        Command(["quorate-checks", "error-pages", "--check"]),
        gen=Command(["quorate-checks", "error-pages"]),
    ),
    Check("Import cycles", Command(["quorate-checks", "cycles", "--check"])),
    Check("Simulator's rule copies", Command(["quorate-checks", "rule-copies", "--check"])),
    Check("Published evidence", Command(["quorate-evidence", "status"]), tells=True),
    Check("Tidy", Command(["pytest", "-q", "tidy"], "infra/checks")),
]
