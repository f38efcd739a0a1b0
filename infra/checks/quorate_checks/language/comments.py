"""Comments and docstrings of one source file, each as numbered lines without their markers."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

Lines = list[tuple[int, str]]

_DOUBLE = r'"(?:\\.|[^"\\\n])*"'
_SINGLE = r"'(?:\\.|[^'\\\n])*'"
_SLASHES = r"(?P<line>(?<!:)//[^\n]*)"
_STARS = r"(?P<block>/\*.*?\*/)"


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.DOTALL)


_RUST = _pattern(
    r'\b(?:br|r|cr)(?P<hashes>#*)".*?"(?P=hashes)', r'"(?:\\.|[^"\\])*"', r"'(?:\\.[^']*|[^'\\])'", _SLASHES, _STARS
)
_REGULAR_EXPRESSION = r"[(,=:\[!&|?{};]\s*/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+/"
_SCRIPT = _pattern(_DOUBLE, r"(?<!\w)" + _SINGLE, r"`(?:\\.|[^`\\])*`", _REGULAR_EXPRESSION, _SLASHES, _STARS)
_GO = _pattern(_DOUBLE, r"`[^`]*`", r"'(?:\\.[^']*|[^'\\])'", _SLASHES, _STARS)
_C = _pattern(_DOUBLE, r"'(?:\\.[^']*|[^'\\])'", _SLASHES, _STARS)
_SQL = _pattern(r"'(?:''|[^'])*'", r"(?P<line>--[^\n]*)", _STARS)
_HASH = _pattern(_DOUBLE, r"'[^'\n]*'", r"(?P<line>(?<!\S)#[^\n]*)")
_TERRAFORM = _pattern(
    _DOUBLE, r"<<-?(?P<mark>\w+)\n.*?\n\s*(?P=mark)\b", r"(?P<line>(?<!\S)#[^\n]*|(?<![:\S])//[^\n]*)", _STARS
)
_STYLES = _pattern(_DOUBLE, _SINGLE, _STARS)

_BY_SUFFIX = {
    ".rs": _RUST,
    **dict.fromkeys((".ts", ".tsx", ".mjs", ".js"), _SCRIPT),
    ".go": _GO,
    **dict.fromkeys((".java", ".c", ".h"), _C),
    ".sql": _SQL,
    **dict.fromkeys((".sh", ".toml", ".yaml", ".yml", ".tftpl", ".ini", ".conf", ".in", ".mk"), _HASH),
    **dict.fromkeys((".tf", ".hcl"), _TERRAFORM),
    ".css": _STYLES,
}
_BY_NAME = dict.fromkeys(("Makefile", "Dockerfile", "run", ".gitignore", ".gitattributes"), _HASH)

_MARKER = re.compile(r"^(?:///?!?|--+|#+:?) ?")
# Addressed to tools, not to people.
_DIRECTIVE = re.compile(
    r"^\s*(?:!|noqa|type: ?ignore|mypy:|pylint|ruff:|pragma|shellcheck|eslint|oxlint|@ts-|prettier|go:|nolint|rustfmt|"
    r"clippy|fmt:|\+build|SPDX|-\*-|syntax=|cloud-config|region |endregion|@vitest|@jsx|/ <reference)"
)


@dataclass(frozen=True)
class _Comment:
    """`is_trailing`: code stands before it on its first line."""

    line: int
    column: int
    text: str
    marker: str
    is_trailing: bool


def is_source(name: str, suffix: str) -> bool:
    return suffix == ".py" or suffix in _BY_SUFFIX or name in _BY_NAME


def blocks(name: str, suffix: str, text: str) -> Iterator[Lines]:
    """One list of lines for each comment; line comments that follow one another in a column are one."""
    if suffix == ".py":
        yield from _docstrings(text)
        yield from _joined(_python_comments(text))
        return
    pattern = _BY_SUFFIX.get(suffix) or _BY_NAME[name]
    line_comments = []
    for found in pattern.finditer(text):
        groups = found.groupdict()
        begin = found.start()
        line = text.count("\n", 0, begin) + 1
        before = text[text.rfind("\n", 0, begin) + 1 : begin]
        if groups.get("line") is not None:
            line_comments.append(_comment(line, len(before), found[0], bool(before.strip())))
        elif groups.get("block") is not None:
            yield list(enumerate(_stars_off(found[0]), line))
    yield from _joined(line_comments)


def without_comments(suffix: str, text: str, keeps_strings: bool = True) -> str:
    """The code alone, blanks in place of comments and, if asked, of strings; positions stay."""

    def blank(found: re.Match[str]) -> str:
        groups = found.groupdict()
        is_comment = groups.get("line") is not None or groups.get("block") is not None
        return found[0] if keeps_strings and not is_comment else re.sub(r"[^\n]", " ", found[0])

    return _BY_SUFFIX[suffix].sub(blank, text)


def _comment(line: int, column: int, text: str, is_trailing: bool) -> _Comment:
    marker = _MARKER.match(text)
    kind = marker[0].strip() if marker else ""
    return _Comment(line, column, text[len(marker[0]) if marker else 0 :], kind, is_trailing)


def _joined(comments: list[_Comment]) -> Iterator[Lines]:
    lines: Lines = []
    last: _Comment | None = None
    for comment in comments:
        follows = (
            last is not None
            and comment.line == last.line + 1
            and comment.column == last.column
            and comment.marker == last.marker
            and not comment.is_trailing
        )
        if not follows and lines:
            yield lines
            lines = []
        last = comment
        lines.append((comment.line, "" if _DIRECTIVE.match(comment.text) else comment.text))
    if lines:
        yield lines


def _stars_off(text: str) -> list[str]:
    inner = re.sub(r"^/\*+!?|\*+/$", "", text)
    return [re.sub(r"^\s*\*? ?", "", line) if number else line.strip() for number, line in enumerate(inner.split("\n"))]


def _python_comments(text: str) -> list[_Comment]:
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                found.append(_comment(line, column, token.string, bool(token.line[:column].strip())))
    except (tokenize.TokenError, SyntaxError):
        pass  # the formatter's check reports a file that is not Python
    return found


def _docstrings(text: str) -> Iterator[Lines]:
    """Strings that are statements: of modules, classes and functions, and below attributes."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            raw = node.value.value.split("\n")
            indent = " " * node.col_offset
            yield [(node.lineno + at, line.removeprefix(indent)) for at, line in enumerate(raw)]
