"""Copies of the files that several modules share: `python -m quorate_offline.shared_files [--check]`.

Terraform declares variables in each module, and a module must work without the rest of the repository.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from quorate_offline.mirror import REPOSITORY, TERRAFORM

CLOUDS = ("aws", "azure", "gcp")
COPIES = {
    TERRAFORM / "shared/inputs.tf": [f"{module}/inputs.tf" for module in (*CLOUDS, "compute-local")],
    TERRAFORM / "shared/machines.tf": [f"{module}/machines.tf" for module in CLOUDS],
    REPOSITORY / "infra/observability/collector.yaml": ["collector/files/collector.yaml"],
}


def generated_files() -> dict[Path, str]:
    return {TERRAFORM / "modules" / copy: _copy_of(source) for source, copies in COPIES.items() for copy in copies}


def _copy_of(source: Path) -> str:
    banner = f"# Generated from {source.relative_to(REPOSITORY)} by `make gen`; do not edit.\n"
    return banner + source.read_text()


def main(arguments: list[str] | None = None) -> int:
    """Write the copies; with `--check` only name the stale ones, and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="quorate_offline.shared_files", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a copy is stale")
    chosen = parser.parse_args(arguments)
    wanted = generated_files()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if not chosen.check:
            path.write_text(wanted[path])
        print(f"{'stale' if chosen.check else 'wrote'}: {path.relative_to(REPOSITORY)}")
    return 1 if chosen.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
