"""The sentences of a checkout, judged and counted per top folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quorate_checks import checkout
from quorate_checks.language import comments, prose, rules

COMMENTS, DOCS, CHANGELOG = "comments", "docs", "changelog"
SOURCES = (COMMENTS, DOCS, CHANGELOG)
ROOT = "."  # the name of the top folder for files at the root

_GENERATED = re.compile(
    r"^\W*(?:Code )?Generated (?:from|by)\b|\. Generated (?:from|by)\b|\bdo not edit\b|\bauto-?generated (?:by|from)\b",
    re.IGNORECASE | re.MULTILINE,
)
_BANNER_LINES = 5  # a banner stands at the beginning
_LICENCE_TEXT = re.compile(r"(^|/)(LICEN[CS]E|NOTICE|COPYING)[^/]*$")


@dataclass(frozen=True)
class Finding:
    """`kind`: headless, long (more words than allowed) or longish (more than aimed at)."""

    path: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.text}"


@dataclass
class Tally:
    """Headings count where openings are judged, not where lengths are."""

    openings: int = 0
    headless: int = 0
    sentences: int = 0
    over_30_words: int = 0
    over_25_words: int = 0

    def __iadd__(self, other: Tally) -> Tally:
        self.openings += other.openings
        self.headless += other.headless
        self.sentences += other.sentences
        self.over_30_words += other.over_30_words
        self.over_25_words += other.over_25_words
        return self

    @property
    def headless_ratio(self) -> float:
        return self.headless / self.openings if self.openings else 0.0

    @property
    def over_30_ratio(self) -> float:
        return self.over_30_words / self.sentences if self.sentences else 0.0

    @property
    def over_25_ratio(self) -> float:
        return self.over_25_words / self.sentences if self.sentences else 0.0


Tallies = dict[tuple[str, str], Tally]  # by top folder and source


def total(tallies: Tallies, *sources: str) -> Tally:
    result = Tally()
    for (_, source), tally in tallies.items():
        if source in sources:
            result += tally
    return result


def judge(root: Path, paths: Iterable[str]) -> tuple[Tallies, list[Finding]]:
    """Count the sentences of the files at `paths`, which are relative to `root`."""
    tallies: Tallies = {}
    findings: list[Finding] = []
    for path in paths:
        source = source_of(path)
        text = (root / path).read_text(errors="replace")
        if source is None or is_generated(text):
            continue
        folder = path.split("/")[0] if "/" in path else ROOT
        tally = tallies.setdefault((folder, source), Tally())
        for sentence in sentences_of(path, text):
            kinds = _judge_sentence(sentence, tally)
            findings += [Finding(path, sentence.line, kind, sentence.text) for kind in kinds]
    return tallies, findings


def sentences_of(path: str, text: str) -> Iterator[prose.Sentence]:
    file = Path(path)
    if file.suffix == ".md":
        yield from prose.sentences(list(enumerate(text.split("\n"), 1)), has_headings=True)
        return
    for lines in comments.blocks(file.name, file.suffix, text):
        yield from prose.sentences(lines)


def source_of(path: str) -> str | None:
    """Comments, docs, the changelog, or None: no text that is judged."""
    file = Path(path)
    if _LICENCE_TEXT.search(path):
        return None
    if file.suffix == ".md":
        return CHANGELOG if file.name == "CHANGELOG.md" else DOCS
    return COMMENTS if comments.is_source(file.name, file.suffix) else None


def is_generated(text: str) -> bool:
    return bool(_GENERATED.search("\n".join(text.split("\n", _BANNER_LINES)[:_BANNER_LINES])))


def _judge_sentence(sentence: prose.Sentence, tally: Tally) -> list[str]:
    kinds = []
    tally.openings += 1
    if rules.is_headless(sentence.masked, sentence.is_heading):
        tally.headless += 1
        kinds.append("headless")
    if sentence.is_heading:
        return kinds
    words = rules.length(sentence.masked)
    tally.sentences += 1
    tally.over_25_words += words > rules.WORDS_AIM
    if words > rules.WORDS_MAX:
        tally.over_30_words += 1
        kinds.append("long")
    elif words > rules.WORDS_AIM:
        kinds.append("longish")
    return kinds


def files(root: Path, chosen: list[str]) -> list[str]:
    """Files with sentences below the chosen paths, without those that `.gitattributes` calls generated or vendored."""
    wanted = [name for name in checkout.files(root, chosen) if source_of(name) is not None]
    marks = ["git", "check-attr", "-z", "--stdin", "linguist-generated", "linguist-vendored"]
    fields = checkout.git(marks, root, "\0".join(wanted)).split("\0")
    left_out = {name for name, value in zip(fields[0::3], fields[2::3], strict=False) if value in ("set", "true")}
    return [name for name in wanted if name not in left_out]
