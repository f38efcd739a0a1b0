"""Archived days of usage: one compressed file a day, with a window as JSON in each line."""

import asyncio
import gzip
import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.database.scope import EveryOrganization
from quorate_api.telemetry.windows import Window
from quorate_api.usage.repository import UsageRepository

LINES_AT_ONCE = 1_000  # some milliseconds in a thread


async def write_day(engine: AsyncEngine, day_s: int, folder: Path) -> Path:
    """Write all windows of the day to `usage-YYYY-MM-DD.jsonl.gz`. No more come, so a file that is there stays."""
    path = folder / f"usage-{datetime.fromtimestamp(day_s, UTC):%Y-%m-%d}.jsonl.gz"
    if path.exists():
        return path
    beside = path.with_suffix(".part")
    with beside.open("wb") as raw:
        # Without the present time and a name in the head, the same windows make the same bytes.
        with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as out:
            async with engine.begin() as connection:
                scope = EveryOrganization(connection, "days of all organizations are archived together")
                lines: list[Window] = []
                async for window in UsageRepository(scope).of_day(day_s):
                    lines.append(window)
                    if len(lines) == LINES_AT_ONCE:
                        await asyncio.to_thread(_write, out, lines)
                        lines = []
                await asyncio.to_thread(_write, out, lines)
        raw.flush()
        await asyncio.to_thread(os.fsync, raw.fileno())
    beside.replace(path)
    await asyncio.to_thread(_sync_folder, folder)
    return path


def _write(out: gzip.GzipFile, windows: list[Window]) -> None:
    for window in windows:
        out.write(json.dumps(asdict(window), separators=(",", ":")).encode() + b"\n")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
