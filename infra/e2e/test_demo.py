"""The demo, shortened: the same story and the same checks in a few seconds of traffic."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from conftest import FOLDER
from quorate_demo.report import FAILOVER_GAP_MS_MAX, SERVER_MEMORY_BYTES_MAX

SECONDS = "12"
KEYS = {
    *("acked", "read_back", "lost", "duplicated", "reordered", "billed", "rate_per_s", "append_p50_us"),
    *("append_p99_us", "failover_gap_ms", "refusal", "sla", "invoice_total_micros"),
}


def test_a_short_demo_passes_and_says_so() -> None:
    result = FOLDER / "demo.json"
    result.parent.mkdir(parents=True, exist_ok=True)
    result.unlink(missing_ok=True)
    command = [str(Path(sys.executable).parent / "quorate-demo"), "--seconds", SECONDS]
    command += ["--folder", str(FOLDER / "demo"), "--json", str(result)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    found = json.loads(result.read_text())
    assert found["passed"] is True
    assert found.keys() >= KEYS
    assert found["refusal"]["reason"]
    assert max(found["server_memory_bytes"].values()) < SERVER_MEMORY_BYTES_MAX
    assert {group["durability"] for group in found["groups"]} == {"persistent", "in_memory"}
    for group in found["groups"]:
        assert group["acked"] == group["read_back"] == group["billed"] > 100_000
        assert group["lost"] == group["duplicated"] == group["reordered"] == group["unknown"] == 0
        assert group["failover_gap_ms"] <= FAILOVER_GAP_MS_MAX
    assert any(group["head_killed"] for group in found["groups"])
