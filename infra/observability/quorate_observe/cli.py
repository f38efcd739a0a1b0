"""`quorate-observe gen|check-alerts|bridge`: what is generated for watching a fleet, and whether alerts work."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from quorate_local.options import REPOSITORY
from quorate_observe import bridge, dashboards, live, metrics, names

COLLECTOR = metrics.FOLDER / "collector.yaml"
# Terraform's modules are used without the rest of the repository, so they have a copy.
MACHINES_COLLECTOR = REPOSITORY / "infra/terraform/modules/collector/files/collector.yaml"


def main(arguments: list[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    result: int = chosen.run(chosen)
    return result


def generated_files() -> dict[Path, str]:
    known = metrics.load()
    return {**names.generated(known), **dashboards.generated(), MACHINES_COLLECTOR: COLLECTOR.read_text()}


def generate(chosen: argparse.Namespace) -> int:
    """Write every generated file; with `--check` only say which are stale, and exit 1 then."""
    wanted = generated_files()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    strangers = [path for path in dashboards.FOLDER.glob("*.json") if path not in wanted]
    for path in stale:
        if not chosen.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
        print(f"{'stale' if chosen.check else 'wrote'}: {path.relative_to(REPOSITORY)}")
    for path in strangers:
        if not chosen.check:
            path.unlink()
        print(f"{'of no source' if chosen.check else 'removed'}: {path.relative_to(REPOSITORY)}")
    return 1 if chosen.check and (stale or strangers) else 0


def check_alerts(chosen: argparse.Namespace) -> int:
    """Evaluate every alert's expression on a running Prometheus and say how it went."""
    found = live.wait_for_all(chosen.prometheus, chosen.timeout, idle=not chosen.busy)
    print(live.table(found))
    return 0 if all(each.works for each in found) else 1


def run_bridge(chosen: argparse.Namespace) -> int:
    """Serve until it is told to stop."""
    return bridge.serve(chosen.port, chosen.address_file)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quorate-observe", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    writes = commands.add_parser("gen", help="write names and dashboards from their sources")
    writes.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file is stale")
    writes.set_defaults(run=generate)
    checks = commands.add_parser("check-alerts", help="evaluate every alert's expression on live data")
    checks.add_argument("--prometheus", required=True, metavar="URL", help="as in http://127.0.0.1:9090")
    checks.add_argument("--timeout", type=float, default=60.0, metavar="S", help="seconds to wait for series")
    checks.add_argument("--busy", action="store_true", help="series that begin with traffic must be there too")
    checks.set_defaults(run=check_alerts)
    bridges = commands.add_parser("bridge", help="OTLP in, Prometheus out, on loopback; stands in for a collector")
    bridges.add_argument("--port", type=int, default=0, help="0: any free one")
    bridges.add_argument("--address-file", type=Path, required=True, help="written when it listens")
    bridges.set_defaults(run=run_bridge)
    return parser


if __name__ == "__main__":
    sys.exit(main())
