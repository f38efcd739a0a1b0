"""The table of findings that each top folder may still have: it is only ever lowered.

A folder that meets the goals needs no row.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from quorate_checks.language import count

FILE = Path(__file__).resolve().parents[2] / "tidy" / "language_limits.toml"
HEADLESS_GOAL = {count.COMMENTS: 0.005, count.DOCS: 0.01, count.CHANGELOG: 0.01}
OVER_30_WORDS_GOAL = 0.05

Limits = dict[tuple[str, str], tuple[int, int]]  # (top folder, source) → (headless, over 30 words)

_HEAD = """\
# Findings of the language check that each top folder may still have: [headless, over 30 words].
# `quorate-checks language --lower` lowers them, and drops rows of folders that meet the goals. No row is ever raised.
"""


def read(file: Path = FILE) -> Limits:
    rows = tomllib.loads(file.read_text()) if file.exists() else {}
    return {(folder, source): (row[0], row[1]) for source, folders in rows.items() for folder, row in folders.items()}


def excesses(tallies: count.Tallies, limits: Limits) -> list[str]:
    """A line for each count that is above both its limit and its goal."""
    found = []
    for (folder, source), tally in sorted(tallies.items()):
        headless, over_30_words = limits.get((folder, source), (0, 0))
        allowed = max(headless, int(HEADLESS_GOAL[source] * tally.openings))
        if tally.headless > allowed:
            found.append(f"{folder} ({source}): {tally.headless} headless sentences, at most {allowed}")
        allowed = max(over_30_words, int(OVER_30_WORDS_GOAL * tally.sentences))
        if tally.over_30_words > allowed:
            found.append(f"{folder} ({source}): {tally.over_30_words} sentences over 30 words, at most {allowed}")
    return found


def lowered(tallies: count.Tallies, limits: Limits) -> Limits:
    """The limits, none above what is there now; without rows of folders that meet the goals."""
    result = {}
    for (folder, source), (headless, over_30_words) in limits.items():
        tally = tallies.get((folder, source), count.Tally())
        is_met = tally.headless_ratio <= HEADLESS_GOAL[source] and tally.over_30_ratio <= OVER_30_WORDS_GOAL
        if not is_met:
            result[folder, source] = (min(headless, tally.headless), min(over_30_words, tally.over_30_words))
    return result


def write(limits: Limits, file: Path = FILE) -> None:
    lines = [_HEAD]
    for source in count.SOURCES:
        rows = sorted((folder, row) for (folder, its_source), row in limits.items() if its_source == source)
        if rows:
            lines.append(f"[{source}]")
            lines += [f'"{folder}" = [{headless}, {over_30_words}]' for folder, (headless, over_30_words) in rows]
            lines.append("")
    file.write_text("\n".join(lines))
