"""The load driver on one group's handle, beside whatever else a claim does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

from quorate_harness.fleet import Fleet, MeasurementFailed
from quorate_local.components import binary

DEADLINE_S = 60.0

Driver = tuple[subprocess.Popen[bytes], Path]


def start(servers: Fleet, handle: Path, what: str, flags: list[str]) -> Driver:
    """`what`: append or read."""
    out = servers.folder / f"{what}-{uuid4()}.json"
    driver = binary(servers.stack.options, "quorate-load")
    command = [driver, what, "--handle", str(handle), "--json", str(out), *flags]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE), out


def ended(process: subprocess.Popen[bytes], out: Path) -> dict[str, Any]:
    """Its results, once it has ended; `MeasurementFailed` if there are none in time."""
    try:
        _, said = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise MeasurementFailed("the load driver did not end") from None
    if not out.exists():
        raise MeasurementFailed(f"the load driver failed: {said.decode()[-300:]}")
    found: dict[str, Any] = json.loads(out.read_text())
    out.unlink()
    return found
