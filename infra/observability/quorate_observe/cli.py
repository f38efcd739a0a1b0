"""`quorate-observe gen|check-alerts|bridge`: generated names and dashboards, and the check that alerts work."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from quorate_local.options import REPOSITORY
from quorate_observe import bridge, dashboards, live, metrics, names


def main(arguments: list[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    result: int = chosen.run(chosen)
    return result


def generated_files() -> dict[Path, str]:
    known = metrics.load()
    return {**names.generated(known), **dashboards.generated()}


def generate(chosen: argparse.Namespace) -> int:
    """Write every generated file. `--check` only names the stale ones, and returns 1 then."""
    wanted = generated_files()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    orphans = [path for path in dashboards.FOLDER.glob("*.json") if path not in wanted]
    for path in stale:
        if not chosen.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
        print(f"{'stale' if chosen.check else 'wrote'}: {path.relative_to(REPOSITORY)}")
    for path in orphans:
        if not chosen.check:
            path.unlink()
        print(f"{'without a source' if chosen.check else 'removed'}: {path.relative_to(REPOSITORY)}")
    return 1 if chosen.check and (stale or orphans) else 0


def check_alerts(chosen: argparse.Namespace) -> int:
    """Evaluate every alert's expression on a running Prometheus, and print the results."""
    found = live.wait_for_all(chosen.prometheus, chosen.timeout, idle=not chosen.busy)
    print(live.table(found))
    return 0 if all(each.works for each in found) else 1


def run_bridge(chosen: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
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
    bridges = commands.add_parser("bridge", help="OTLP in, Prometheus out, on loopback; replaces a collector")
    bridges.add_argument("--port", type=int, default=0, help="0: any free one")
    bridges.add_argument("--address-file", type=Path, required=True, help="file to write when it listens")
    bridges.set_defaults(run=run_bridge)
    return parser


if __name__ == "__main__":
    sys.exit(main())
