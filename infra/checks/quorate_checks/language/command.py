"""`quorate-checks language`: ratios per top folder, findings with `--list`, figures of the whole repository."""

from __future__ import annotations

import argparse
from pathlib import Path

from quorate_checks.language import count, limits
from quorate_harness import figures
from quorate_harness.figures import Figure
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

COMMAND = "quorate-checks language"
KINDS = ("headless", "long", "longish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files or folders (all)")
    parser.add_argument("--list", action="store_true", help="each finding as path:line: kind: sentence")
    parser.add_argument("--kind", action="append", choices=KINDS, help="list only these (headless and long)")
    parser.add_argument("--repository", type=Path, default=REPOSITORY, help="another checkout; keeps no figures")
    parser.add_argument("--lower", action="store_true", help="lower the limits of the tidy check to what is there now")


def main(display: Display, chosen: argparse.Namespace) -> int:
    root = chosen.repository.resolve()
    files = count.files(root, chosen.paths)
    if not files:
        display.line("no file with sentences is there")
        return 2
    tallies, findings = count.judge(root, files)
    if chosen.list:
        kinds = chosen.kind or ["headless", "long"]
        for finding in findings:
            if finding.kind in kinds:
                display.line(str(finding))
    for line in table(tallies):
        display.line(line)
    if not chosen.paths:
        kept = ratios(tallies)
        for line in ["", *figures.table(kept)]:
            display.line(line)
        if root == REPOSITORY:
            figures.keep(kept, COMMAND, figures.FOLDER / "language.jsonl")
    if chosen.lower:
        limits.write(limits.lowered(tallies, limits.read()))
    return 0


def table(tallies: count.Tallies) -> list[str]:
    """A row for each top folder and source, with the share of each finding."""
    lines = [f"{'folder':<12}{'source':<11}{'sentences':>9}{'headless':>16}{'over 30 words':>16}{'over 25 words':>16}"]
    for (folder, source), tally in sorted(tallies.items()):
        lines.append(_row(folder, source, tally))
    for source in count.SOURCES:
        lines.append(_row("all", source, count.total(tallies, source)))
    lines.append(_row("all", "all", count.total(tallies, *count.SOURCES)))
    return lines


def _row(folder: str, source: str, tally: count.Tally) -> str:
    counted = (
        (tally.headless, tally.headless_ratio),
        (tally.over_30_words, tally.over_30_ratio),
        (tally.over_25_words, tally.over_25_ratio),
    )
    columns = "".join(f"{f'{number} ({ratio:.1%})':>16}" for number, ratio in counted)
    return f"{folder:<12}{source:<11}{tally.openings:>9}{columns}"


def ratios(tallies: count.Tallies) -> list[Figure]:
    """The figures of a whole repository. The changelog is one of the docs where openings are judged."""
    docs = count.total(tallies, count.DOCS, count.CHANGELOG)
    everything = count.total(tallies, *count.SOURCES)
    comments = count.total(tallies, count.COMMENTS)
    goal = limits.OVER_30_WORDS_GOAL
    kept = [
        Figure("headless_sentences_ratio", comments.headless_ratio, "ratio", limits.HEADLESS_GOAL[count.COMMENTS]),
        Figure("headless_sentences_docs_ratio", docs.headless_ratio, "ratio", limits.HEADLESS_GOAL[count.DOCS]),
        Figure("sentences_over_30_words_ratio", everything.over_30_ratio, "ratio", goal),
    ]
    for source in count.SOURCES:
        ratio = count.total(tallies, source).over_30_ratio
        kept.append(Figure(f"sentences_over_30_words_{source}_ratio", ratio, "ratio", goal))
    kept.append(Figure("sentences_over_25_words_ratio", everything.over_25_ratio, "ratio"))
    return kept
