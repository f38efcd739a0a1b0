"""Imports between modules of Python packages. Imports for type checkers only are left out; local ones count."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from quorate_checks.cycles.graph import Import

_OF_TESTS = {"tests", "e2e", "tidy", "conftest.py"}


def is_module(path: str) -> bool:
    return path.endswith(".py") and not _OF_TESTS & set(PurePosixPath(path).parts)


def imports(files: dict[str, str]) -> list[Import]:
    """`files`: paths and texts of all modules, of one package or of several."""
    names = {_name(path, files): path for path in files}
    found = []
    for path, text in files.items():
        package = _name(path, files) if path.endswith("/__init__.py") else _name(path, files).rpartition(".")[0]
        for node in _running(ast.parse(text)):
            for name in _targets(node, package, names):
                found.append(Import(path, names[name], node.lineno, ast.unparse(node)))
    return [one for one in found if one.source != one.target]


def _name(path: str, files: dict[str, str]) -> str:
    """The dotted name: folders count as packages as far up as they have an `__init__.py`."""
    file = PurePosixPath(path)
    parts = [] if file.name == "__init__.py" else [file.stem]
    folder = file.parent
    while str(folder / "__init__.py") in files:
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def _running(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports that run: those of functions too, not those below `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for other in child.orelse:
                yield from _running(ast.Module([other], []))
        else:
            yield from _running(child)


def _targets(node: ast.Import | ast.ImportFrom, package: str, names: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in names)
        return
    base = node.module or ""
    if node.level:
        parts = package.split(".")
        above = parts[: len(parts) - node.level + 1]
        base = ".".join([*above, *([base] if base else [])])
    for alias in node.names:
        module = f"{base}.{alias.name}"
        if module in names:
            yield module
        elif base in names:
            yield base
