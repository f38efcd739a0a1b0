"""Prometheus beside the stack (`make up OBSERVE=1`): a receiver of metrics, their store, and the alerts.

Processes send OTLP to `bridge`, in place of a fleet's OpenTelemetry collector. `prometheus` scrapes that and evaluates
the alert rules of `infra/observability/alerts`. Both are on loopback.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from quorate_local.components import LOOPBACK, PHASE_BRIDGE, PHASE_PROMETHEUS, http_status
from quorate_local.layout import Layout, read_json, write_text
from quorate_local.options import REPOSITORY, BadOptions
from quorate_local.process import ProcessSpec, Running

UNPACKED = REPOSITORY / "build" / "prometheus" / "usr" / "bin"
RULES = REPOSITORY / "infra" / "observability" / "alerts" / "*.rules.yaml"
SCRAPE_INTERVAL = "2s"
RETENTION = "2d"
READY_S = 30.0
SERIES_TIMEOUT_S = 45.0  # two exports of the slowest process to start, on a busy machine
CHECK_TIMEOUT_S = 2 * SERIES_TIMEOUT_S


def tool(name: str) -> str:
    """`prometheus` or `promtool`: unpacked by `make setup`, or the machine's own."""
    if (UNPACKED / name).exists():
        return str(UNPACKED / name)
    found = shutil.which(name)
    if found is None:
        raise BadOptions(f"{name} is not here; infra/setup/prometheus.sh fetches it, or names the package to install")
    return found


def require() -> None:
    tool("prometheus")
    _observe()


def bridge(layout: Layout, port: int) -> ProcessSpec:
    address = bridge_file(layout)
    address.unlink(missing_ok=True)
    command = [_observe(), "bridge", "--port", str(port), "--address-file", str(address)]

    def ready(_: Running) -> bool:
        found = read_json(address)
        return found is not None and http_status(f"http://{found['address']}/metrics") == 200

    return ProcessSpec("bridge", command, ready, PHASE_BRIDGE, ready_timeout_s=READY_S)


def bridge_file(layout: Layout) -> Path:
    return layout.observe / "bridge.json"


def prometheus(layout: Layout, bridge_address: str, listen: str) -> ProcessSpec:
    config = layout.observe / "prometheus.json"
    write_text(config, json.dumps(_config(bridge_address), indent=1) + "\n")
    command = [
        tool("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={layout.observe / 'data'}",
        f"--storage.tsdb.retention.time={RETENTION}",
        f"--web.listen-address={listen}",
        "--log.level=warn",
    ]

    def ready(_: Running) -> bool:
        return http_status(f"http://{listen}/-/ready") == 200

    return ProcessSpec("prometheus", command, ready, PHASE_PROMETHEUS, ready_timeout_s=READY_S)


def _config(bridge_address: str) -> dict[str, object]:
    """The configuration, as infra/observability/prometheus.yaml is for a fleet; JSON is YAML."""
    scrape = {
        "job_name": "quorate-collector",
        "honor_labels": True,  # job and instance of the process, not of the bridge
        "static_configs": [{"targets": [bridge_address]}],
    }
    return {
        "global": {"scrape_interval": SCRAPE_INTERVAL, "evaluation_interval": SCRAPE_INTERVAL},
        "rule_files": [str(RULES)],
        "scrape_configs": [scrape],
    }


def check_alerts(url: str, *, busy: bool = False) -> tuple[bool, str]:
    """Whether every alert's expression evaluates and finds its series, and the table of the results.

    `busy`: there were requests and appends, so their series must be there too.
    """
    command = [_observe(), "check-alerts", "--prometheus", url, "--timeout", str(SERIES_TIMEOUT_S)]
    command += ["--busy"] if busy else []
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CHECK_TIMEOUT_S)
    return done.returncode == 0, done.stdout + done.stderr


def _observe() -> str:
    path = Path(sys.executable).parent / "quorate-observe"
    if not path.exists():
        raise BadOptions("the command quorate-observe is not installed here; `make setup` installs it")
    return str(path)


def loopback(port: int) -> str:
    return f"{LOOPBACK}:{port}"
