"""`make bench`: appends a second through a degree-3 in-memory group, by the load driver, on this machine.

The canonical workload: 64-byte entries, three servers, one connection. Prints two numbers that matter
(rate, p99) and writes `build/bench.json` with what is needed to repeat them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from quorate_local import ProcessFailed, Stack, StackOptions
from quorate_local.components import binary
from quorate_local.display import Display
from quorate_local.layout import write_json, write_text
from quorate_local.options import REPOSITORY, BadOptions
from quorate_scenarios.customer import Customer, Refused

GOAL_PER_S = 100_000
SERVERS = 3
ENTRY_BYTES = 64
RESERVED_PER_S = 1_000_000  # asked for first; the refusal then tells the most that one group may have
OUTSTANDING = 1024
SECONDS = 10
LOAD_TIMEOUT_S = 120


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-bench", description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="length of the measurement (default %(default)s)")
    chosen = parser.parse_args(arguments)
    display = Display()
    folder = REPOSITORY / "build" / "bench"
    stack = Stack(StackOptions.from_environment(state=folder / "state", servers=SERVERS), display)
    try:
        stack.wipe()
        display.line("Starting three servers")
        with stack:
            result = measure(stack, chosen.seconds, folder, display)
    except (BadOptions, ProcessFailed, Refused, TimeoutError, subprocess.SubprocessError) as error:
        display.line(f"\nThe measurement could not be finished.\n{error}")
        return 1
    write_json(REPOSITORY / "build" / "bench.json", result)
    load, reserved = result["load"], result["reserved_per_s"]
    rate = round(load["acked_per_s"])
    display.line(
        f"\n{rate:,} appends/s of {ENTRY_BYTES} bytes, p99 {load['p99_us']:,} µs (goal {GOAL_PER_S:,}/s)"
        f"\nThe group reserves {reserved:,}/s, the most that the cost profile promises one group: its budget holds"
        "\nit there. `quorate-load bench` measures without."
    )
    return 0 if rate >= GOAL_PER_S else 1


def measure(stack: Stack, seconds: int, folder: Path, display: Display) -> dict[str, Any]:
    """Run the driver against a group of its own; its JSON result with the circumstances."""
    with Customer(stack.api_url, "bench") as customer:
        group = _largest_group(customer)
        handle_file = folder / "handle.json"
        write_text(handle_file, json.dumps(customer.get(f"/v1/groups/{group['id']}/handle")), 0o600)
        result_file = folder / "load.json"
        pids = ",".join(str(pid) for pid in stack.server_pids())
        command = [binary(stack.options, "quorate-load"), "append", "--handle", str(handle_file)]
        command += ["--size", str(ENTRY_BYTES), "--outstanding", str(OUTSTANDING), "--seconds", str(seconds)]
        command += ["--server-pids", pids, "--json", str(result_file), "--command", "make bench"]
        command += ["--figure", "append_64b_mem_per_s", "--goal", str(GOAL_PER_S)]
        with display.step(f"appending for {seconds} s"):
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=LOAD_TIMEOUT_S, check=False, cwd=REPOSITORY
            )
    if done.returncode != 0:
        raise subprocess.SubprocessError(f"the load driver ended with code {done.returncode}\n{done.stderr[-2000:]}")
    return {
        "load": json.loads(result_file.read_text()),
        "command": "make bench",
        "commit": _commit(),
        "cores": os.cpu_count(),
        "machine": platform.platform(),
        "reserved_per_s": group["sla"]["rate_per_s"],
    }


def _largest_group(customer: Customer) -> dict[str, Any]:
    """An in-memory group with as much reserved as the fleet has."""
    sla = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": ENTRY_BYTES}
    sla["rate_per_s"] = RESERVED_PER_S
    refusal = customer.quote(sla)["refusal"]
    if refusal:
        largest = refusal["largest_sla_that_fits"]
        if largest is None:
            raise TimeoutError(f"the fleet has no room for the bench's group: {refusal['message']}")
        sla["rate_per_s"] = largest["rate_per_s"]
    return customer.create_group("bench", sla)


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
