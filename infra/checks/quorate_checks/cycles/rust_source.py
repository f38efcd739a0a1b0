"""One Rust file as the cycle check sees it: modules, items, uses and paths, without what is compiled for tests only."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from quorate_checks.language import comments

_TOKEN = re.compile(r"[A-Za-z_]\w*|::|=>|->|'\w+|\d[\w.]*|\S")
_NAME = re.compile(r"[A-Za-z_]\w*$")
_ITEMS = {"fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"}
_ENDS_WITH_SEMICOLON = {"use", "const", "static", "type", "let"}
_OPEN, _CLOSE = {"(", "[", "{"}, {")", "]", "}"}


@dataclass(frozen=True)
class Token:
    text: str
    line: int


@dataclass(frozen=True)
class Use:
    """`name` here stands for `path` elsewhere; `*` for all of it."""

    name: str
    path: tuple[str, ...]
    line: int
    is_public: bool


@dataclass(frozen=True)
class Path:
    """A path in the code, such as `crate::a::b`."""

    segments: tuple[str, ...]
    line: int


@dataclass
class Module:
    """The contents of a file or of an inline module."""

    items: set[str] = field(default_factory=set)
    exported_macros: set[str] = field(default_factory=set)
    uses: list[Use] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    words: dict[str, int] = field(default_factory=dict)  # identifier → its first line
    inline: dict[str, Module] = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)  # modules in files of their own → `#[path]`


def read(text: str) -> Module:
    return _Reader(_without_tests(_tokens(text))).module()


def _tokens(text: str) -> list[Token]:
    found = []
    # Strings go too, but for those of `#[path = "…"]`.
    kept = re.sub(r'#\[path = "([^"]*)"\]', lambda path: f"#[path_{path[1].encode().hex()}]", text)
    code = comments.without_comments(".rs", kept, keeps_strings=False)
    line, begin = 1, 0
    for match in _TOKEN.finditer(code):
        line += code.count("\n", begin, match.start())
        begin = match.start()
        found.append(Token(match[0], line))
    return found


def _without_tests(tokens: list[Token]) -> list[Token]:
    """Drop each item that stands below `#[cfg(test)]`."""
    result: list[Token] = []
    at = 0
    while at < len(tokens):
        end = _end_of_attribute(tokens, at)
        if end and _is_for_tests([token.text for token in tokens[at:end]]):
            while more := _end_of_attribute(tokens, end):
                end = more
            at = _end_of_item(tokens, end)
        else:
            result.append(tokens[at])
            at += 1
    return result


def _is_for_tests(attribute: list[str]) -> bool:
    """`#[cfg(test)]`, and `#[cfg(all(test, …))]`."""
    return "".join(attribute).startswith(("#[cfg(test)", "#[cfg(all(test,"))


def _end_of_attribute(tokens: list[Token], at: int) -> int | None:
    if at + 1 < len(tokens) and tokens[at].text == "#":
        begin = at + 2 if tokens[at + 1].text == "!" else at + 1
        if begin < len(tokens) and tokens[begin].text == "[":
            return _behind(tokens, begin)
    return None


def _behind(tokens: list[Token], at: int) -> int:
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index].text in _OPEN) - (tokens[index].text in _CLOSE)
        if depth == 0:
            return index + 1
    return len(tokens)


def _end_of_item(tokens: list[Token], at: int) -> int:
    """Behind the item, statement, field or variant that begins at `at`."""
    begin = at
    if at < len(tokens) and tokens[at].text == "pub":
        begin = at + 1
        if begin < len(tokens) and tokens[begin].text == "(":
            begin = _behind(tokens, begin)
    word = tokens[begin].text if begin < len(tokens) else ""
    is_constant_function = word == "const" and begin + 1 < len(tokens) and tokens[begin + 1].text in ("fn", "unsafe")
    ends_with_semicolon = word in _ENDS_WITH_SEMICOLON and not is_constant_function
    is_item = word in _ITEMS or word in ("impl", "mod", "async", "unsafe", "extern")
    index = begin
    while index < len(tokens):
        text = tokens[index].text
        if text in _CLOSE or text == ";" or (text == "," and not is_item and not ends_with_semicolon):
            return index if text in _CLOSE else index + 1
        if text in _OPEN:
            index = _behind(tokens, index)
            if text == "{" and not ends_with_semicolon:
                return index + (index < len(tokens) and tokens[index].text == "," and not is_item)
            continue
        index += 1
    return index


class _Reader:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def module(self) -> Module:
        """Read up to the end, or to the brace that closes the module."""
        module = Module()
        depth = 0
        is_public = is_exported = False
        path: str | None = None
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            end = _end_of_attribute(self._tokens, self._at)
            if end:
                words = [token.text for token in self._tokens[self._at : end]]
                is_exported |= "macro_export" in words
                path = next((word[5:] for word in words if word.startswith("path_")), path)
                self._at = end
                continue
            if token.text == "pub":
                is_public = True
                self._at += 1
                if self._peek() == "(":
                    self._at = _behind(self._tokens, self._at)
                continue
            if token.text == "}" and depth == 0:
                self._at += 1
                return module
            if token.text == "use":
                self._use(module, is_public)
            elif token.text == "mod" and depth == 0 and self._peek(2) in (";", "{"):
                self._child(module, path)
            else:
                self._code(module, token, depth, is_exported)
                depth += (token.text in _OPEN) - (token.text in _CLOSE)
                if token.text not in (";", "}"):
                    continue  # `pub` and attributes hold for the whole item
            is_public = is_exported = False
            path = None
        return module

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].text if at < len(self._tokens) else ""

    def _child(self, module: Module, path: str | None) -> None:
        name = self._peek(1)
        self._at += 3
        if self._tokens[self._at - 1].text == ";":
            module.files[name] = bytes.fromhex(path).decode() if path else None
        else:
            module.inline[name] = self.module()

    def _code(self, module: Module, token: Token, depth: int, is_exported: bool) -> None:
        """One token, or one path."""
        before = self._tokens[self._at - 1].text if self._at else ""
        if depth == 0 and token.text in _ITEMS:
            name = self._peek(2) if token.text == "macro_rules" else self._peek(1)
            if _NAME.match(name):
                module.items.add(name)
            if token.text == "macro_rules" and is_exported:
                module.exported_macros.add(name)
        segments = [token.text]
        self._at += 1
        if not _NAME.match(token.text):
            return
        if before not in ("::", "."):
            while self._peek() == "::" and _NAME.match(self._peek(1)):
                segments.append(self._peek(1))
                self._at += 2
            if len(segments) > 1:
                module.paths.append(Path(tuple(segments), token.line))
            module.words.setdefault(token.text, token.line)

    def _use(self, module: Module, is_public: bool) -> None:
        self._at += 1
        if self._peek() == "::":
            self._at += 1
        if self._peek() == "<":  # `impl Trait + use<'a>`: bounds, no import
            return
        self._tree(module, (), is_public)
        self._at += self._peek() == ";"

    def _tree(self, module: Module, prefix: tuple[str, ...], is_public: bool) -> None:
        path = prefix
        line = self._tokens[self._at].line if self._at < len(self._tokens) else 0
        while True:
            text = self._peek()
            if text == "{":
                self._at += 1
                while self._peek() not in ("}", ""):
                    self._tree(module, path, is_public)
                    self._at += self._peek() == ","
                self._at += 1
                return
            if text == "*":
                self._at += 1
                module.uses.append(Use("*", path, line, is_public))
                return
            line = self._tokens[self._at].line
            path = path if text == "self" and path else (*path, text)
            self._at += 1
            if self._peek() != "::":
                break
            self._at += 1
        name = path[-1]
        if self._peek() == "as":
            name = self._peek(1)
            self._at += 2
        module.uses.append(Use(name, path, line, is_public))
