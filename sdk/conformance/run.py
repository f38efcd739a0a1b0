#!/usr/bin/env python3
"""Runs conformance scenarios (README.md) with the Python SDK.

python3 run.py [SCENARIO.json …]                   each against a fake group of its own
python3 run.py --handle HANDLE.json [SCENARIO.json …]  those marked "fleet", against a real group
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import secrets
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python" / "src"))

import quorate  # noqa: E402

SCENARIOS = HERE / "scenarios"


class Mismatch(AssertionError):
    """The client did not do what the scenario expects."""


def check(condition: bool, message: str) -> None:
    if not condition:
        raise Mismatch(message)


@contextmanager
def fake_group(path: Path):
    """A fake group for a scenario: its answers, until the block ends; then it must have seen no violation."""
    command = [sys.executable, str(HERE / "fake_server.py"), "--scenario", str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as fake:
        line = fake.stdout.readline()
        if not line:
            raise RuntimeError(f"the fake did not start: {fake.stderr.read()}")
        try:
            yield json.loads(line)
        finally:
            try:
                _, errors = fake.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                fake.kill()
                _, errors = fake.communicate()
    check(fake.returncode == 0, f"the fake saw the client break the protocol: {errors}")


class Run:
    """One run of one scenario."""

    def __init__(self, scenario: dict, handle: dict, refreshed: dict | None) -> None:
        self.scenario = scenario
        self.handle = handle
        self.refreshed = refreshed
        self.prefix = secrets.token_hex(4)
        self.made = 0
        self.client: quorate.Client | None = None
        self.start = 0
        self.acked: dict[int, bytes] = {}
        self.refused: list[bytes] = []
        self.unknown: list[bytes] = []

    async def run(self) -> None:
        expected = self.scenario.get("expect_connect", "ok")
        try:
            await self.connect()
        except quorate.ConnectFailed as problem:
            check(problem.name == expected, f"connect failed with {problem}")
            return
        try:
            check(expected == "ok", f"connect should have failed with {expected}")
            fleet = self.scenario.get("fleet")
            self.start = (await self.client.status()).commit_offset if fleet else self.scenario.get("read_from", 0)
            for step in self.scenario["steps"]:
                await getattr(self, "do_" + step["do"])(step)
            if self.scenario.get("read_back", True):
                await self.read_back()
        finally:
            await self.client.close(drain=False)

    async def connect(self) -> None:
        refresh = (lambda: self.refreshed) if self.scenario.get("refresh") else None
        timeout = self.scenario.get("timeout_ms", 10_000) / 1e3
        self.client = await quorate.connect(self.handle, refresh=refresh, timeout=timeout)

    # Data.

    def entry(self, size: int = 64) -> bytes:
        self.made += 1
        return f"{self.prefix}-{self.made:08d}".encode().ljust(size, b".")

    async def settle(self, futures: list, data: list[list[bytes]], step: dict) -> None:
        """Await appends, book what became of each, and compare with what the step expects."""
        results = await asyncio.gather(*futures, return_exceptions=True)
        outcomes: dict[str, int] = {}
        for result, entries in zip(results, data, strict=True):
            outcome = self.book(result, entries)
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        expected = step.get("expect", "acked")
        wanted = {expected: len(futures)} if isinstance(expected, str) else expected
        check(expected == "any" or outcomes == wanted, f"{step['do']}: {outcomes}, expected {wanted}")

    def book(self, result: object, entries: list[bytes]) -> str:
        if isinstance(result, quorate.AppendRefused):
            self.refused += entries
            return result.name
        if isinstance(result, quorate.AppendUnknown):
            self.unknown += entries
            return "unknown"
        if isinstance(result, BaseException):
            raise result
        base = result.base_offset if isinstance(result, quorate.Appended) else result
        for index, entry in enumerate(entries):
            check(base + index not in self.acked, f"offset {base + index} was given twice")
            self.acked[base + index] = entry
        return "acked"

    async def read_all(self) -> list[quorate.Entry]:
        entries, at = [], self.start
        while True:
            found = await self.client.read(at, max_entries=10_000)
            entries += found.entries
            at = found.next_offset
            if at >= found.commit_offset:
                return entries

    async def read_back(self) -> None:
        """Every acked entry at its offset, once; refused ones nowhere; unknown ones at most once."""
        entries = await self.read_all()
        mine = [entry for entry in entries if entry.data.startswith(self.prefix.encode()) or not entry.data]
        found = {entry.offset: entry.data for entry in mine}
        for offset, data in self.acked.items():
            check(found.get(offset) == data, f"offset {offset} was acked as {data!r} and reads {found.get(offset)!r}")
        seen = [entry.data for entry in mine if entry.data]
        check(len(seen) == len(set(seen)), f"{len(seen) - len(set(seen))} entries are in the log twice")
        there = set(seen)
        check(not there & set(self.refused), "a refused entry is in the log")
        strangers = there - set(self.acked.values()) - set(self.unknown)
        check(not strangers, f"entries in the log that no append answered: {strangers}")

    # Steps.

    async def do_append(self, step: dict) -> None:
        options = {}
        if "expected_offset" in step:
            end = (await self.client.status()).next_offset
            options["expected_offset"] = end + step["expected_offset"]
        if "fencing_token" in step:
            options["fencing_token"] = step["fencing_token"]
        if "timeout_ms" in step:
            options["timeout"] = step["timeout_ms"] / 1e3
        for _ in range(step.get("times", 1)):
            data = b"" if step.get("bytes") == 0 else self.entry(step.get("bytes", 64))
            await self.settle([self.client.append(data, **options)], [[data]], step)

    async def do_append_many(self, step: dict) -> None:
        data = [self.entry(step.get("bytes", 64)) for _ in range(step["entries"])]
        await self.settle([self.client.append_many(data)], [data], step)

    async def do_pipeline(self, step: dict) -> None:
        """Concurrent single appends; those that are acked keep the order in which they were called."""
        timeout = step.get("timeout_ms", 10_000) / 1e3
        data = [self.entry(step.get("bytes", 64)) for _ in range(step["count"])]
        before = set(self.acked)
        await self.settle([self.client.append(entry, timeout=timeout) for entry in data], [[d] for d in data], step)
        order = [self.acked[offset] for offset in sorted(set(self.acked) - before)]
        check(order == sorted(order), "appends were ordered otherwise than they were called")

    async def do_burst(self, step: dict) -> None:
        """Concurrent batches."""
        data = [
            [self.entry(step.get("bytes", 64)) for _ in range(step.get("entries", 3))] for _ in range(step["batches"])
        ]
        await self.settle([self.client.append_many(entries) for entries in data], data, step)

    async def do_tail(self, step: dict) -> None:
        """Follow while appending: every entry once, in order, without a gap."""
        count, received = step["count"], []

        async def follow() -> None:
            async with self.client.tail(self.start, credit_bytes=step.get("credit_bytes", 1 << 20)) as tail:
                async for entry in tail:
                    received.append(entry)
                    if sum(e.data.startswith(self.prefix.encode()) for e in received[-1:]):
                        self.tailed += 1
                    if self.tailed >= count:
                        return

        self.tailed = 0
        follower = asyncio.create_task(follow())
        size = step.get("bytes", 64)
        for _ in range(step.get("rounds", 10)):
            data = [self.entry(size) for _ in range(count // step.get("rounds", 10))]
            await self.settle([self.client.append(entry) for entry in data], [[d] for d in data], step)
        await asyncio.wait_for(follower, 20)
        offsets = [entry.offset for entry in received]
        check(offsets == list(range(self.start, self.start + len(offsets))), "the tail has a gap or a duplicate")

    async def do_read(self, step: dict) -> None:
        try:
            found = await self.client.read(step["offset"], timeout=step.get("timeout_ms", 10_000) / 1e3)
        except quorate.ReadRefused as problem:
            check(problem.name == step.get("expect"), f"read failed with {problem}")
            return
        check(step.get("expect", "entries") == "entries", f"read should have failed with {step.get('expect')}")
        check(len(found.entries) >= step.get("entries_min", 0), f"only {len(found.entries)} entries were read")

    async def do_status(self, step: dict) -> None:
        status = await self.client.status()
        for field, value in step["expect"].items():
            check(getattr(status, field) == value, f"status has {field} {getattr(status, field)}, expected {value}")

    async def do_reconnect(self, step: dict) -> None:
        await self.client.close()
        await self.connect()

    async def do_sleep(self, step: dict) -> None:
        await asyncio.sleep(step["ms"] / 1e3)


async def run_scenario(path: Path, handle: dict | None = None) -> float:
    """Run a scenario, against a fake group unless a handle is given; how long it took, in seconds."""
    scenario = json.loads(path.read_text())
    if handle is not None:
        return await _run_timed(scenario, handle, None)
    with fake_group(path) as answer:
        return await _run_timed(scenario, answer["handle"], answer["refreshed"])


async def _run_timed(scenario: dict, handle: dict, refreshed: dict | None) -> float:
    began = time.monotonic()
    await asyncio.wait_for(Run(scenario, handle, refreshed).run(), 60)
    took_s = time.monotonic() - began
    check(took_s * 1e3 <= scenario.get("within_ms", 60_000), f"it took {took_s:.1f} s")
    return took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--handle", type=Path, help="a handle as the API answers it, as a JSON file")
    parser.add_argument("--verbose", action="store_true", help="log what the client does")
    parser.add_argument("scenarios", nargs="*", type=Path)
    arguments = parser.parse_args()
    if arguments.verbose:
        logging.basicConfig(level=logging.DEBUG, format="%(relativeCreated)d %(message)s")
    handle = json.loads(arguments.handle.read_text()) if arguments.handle else None
    failed = 0
    for path in arguments.scenarios or sorted(SCENARIOS.glob("*.json")):
        if handle is not None and not json.loads(path.read_text()).get("fleet"):
            continue
        try:
            took_s = asyncio.run(run_scenario(path, handle))
            print(f"ok      {path.stem} ({took_s:.2f} s)")
        except (Mismatch, quorate.QuorateError, TimeoutError) as problem:
            failed += 1
            print(f"FAILED  {path.stem}: {type(problem).__name__}: {problem}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
