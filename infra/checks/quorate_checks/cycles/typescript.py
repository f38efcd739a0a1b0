"""Imports between TypeScript modules. `import type` is erased by the compiler and left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from quorate_checks.cycles.graph import Import
from quorate_checks.language import comments

_FROM = re.compile(
    r"\b(?P<verb>import|export)\s+(?P<names>(?:type\s+)?[^'\";]*?)\s*from\s*['\"](?P<from>[^'\"]+)['\"]"
    r"|\bimport\s*\(?\s*['\"](?P<alone>[^'\"]+)['\"]"
)
_ENDINGS = ("", ".ts", ".tsx", "/index.ts", "/index.tsx")


def is_module(path: str) -> bool:
    return path.endswith((".ts", ".tsx")) and not path.endswith((".d.ts", ".test.ts", ".test.tsx"))


def imports(files: dict[str, str], aliases: dict[str, str]) -> list[Import]:
    """`aliases`: prefix of an import → folder, as in tsconfig's `paths`."""
    found = []
    for path, text in files.items():
        code = comments.without_comments(PurePosixPath(path).suffix, text)
        for match in _FROM.finditer(code):
            names = match["names"] or ""
            if names.startswith("type ") or _is_all_types(names):
                continue
            target = _file(match["from"] or match["alone"], path, files, aliases)
            if target and target != path:
                line = code.count("\n", 0, match.start()) + 1
                found.append(Import(path, target, line, " ".join(match[0].split())))
    return found


def _is_all_types(names: str) -> bool:
    """`{ type A, type B }` only."""
    inner = re.fullmatch(r"\{(.*)\}", names.strip(), re.DOTALL)
    parts = [part.strip() for part in inner[1].split(",") if part.strip()] if inner else []
    return bool(parts) and all(part.startswith("type ") for part in parts)


def _file(wanted: str, path: str, files: dict[str, str], aliases: dict[str, str]) -> str | None:
    for base in _bases(wanted, path, aliases):
        stem = re.sub(r"\.m?jsx?$", "", base)
        for candidate in (base, *(stem + ending for ending in _ENDINGS)):
            if candidate in files:
                return candidate
    return None


def _bases(wanted: str, path: str, aliases: dict[str, str]) -> Iterator[str]:
    if wanted.startswith("."):
        parts = list(PurePosixPath(path).parent.parts)
        for part in PurePosixPath(wanted).parts:
            if part == "..":
                parts.pop()
            elif part != ".":
                parts.append(part)
        yield "/".join(parts)
    for prefix, folder in aliases.items():
        if wanted.startswith(prefix):
            yield folder + wanted.removeprefix(prefix)
