"""Imports between the files of one Rust crate.

A path is followed to the file that defines its item: through modules, and through re-exports, which are transparent.
So `use crate::shard::Io` is an import of `shard/io.rs` where `shard/mod.rs` says `pub use io::Io`. A parent that only
declares and re-exports a child does not import it. Methods are not followed: they name no module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from quorate_checks.cycles import rust_source
from quorate_checks.cycles.graph import Import
from quorate_checks.cycles.rust_source import Use

_DEPTH_MAX = 16  # re-exports of re-exports; more is a loop of names


@dataclass
class _Module:
    file: str
    source: rust_source.Module
    parent: _Module | None
    children: dict[str, _Module] = field(default_factory=dict)

    @property
    def root(self) -> _Module:
        return self.parent.root if self.parent else self

    def uses_of(self, name: str) -> list[Use]:
        return [use for use in self.source.uses if use.name == name]


def imports(files: dict[str, str], root: str) -> list[Import]:
    """`files`: paths and texts of the crate; `root`: its `lib.rs`, `main.rs` or another root."""
    tree = _tree(root, rust_source.read(files[root]), None, files, is_root=True)
    macros = {name: module for module in _all(tree) for name in module.source.exported_macros}
    found: set[Import] = set()
    for module in _all(tree):
        found |= _of_module(module, macros)
    return sorted(found)


def _is_of_tests(name: str) -> bool:
    return name == "tests" or name.endswith("_tests")


def _tree(
    file: str, source: rust_source.Module, parent: _Module | None, files: dict[str, str], is_root: bool
) -> _Module:
    module = _Module(file, source, parent)
    path = PurePosixPath(file)
    folder = path.parent if is_root or path.name == "mod.rs" else path.parent / path.stem
    _add_children(module, source, folder, path.parent, files)
    return module


def _add_children(
    module: _Module, source: rust_source.Module, folder: PurePosixPath, beside: PurePosixPath, files: dict[str, str]
) -> None:
    for name, given in source.files.items():
        candidates = [beside / given] if given else [folder / f"{name}.rs", folder / name / "mod.rs"]
        file = next((str(path) for path in candidates if str(path) in files), None)
        if file and not _is_of_tests(name) and not _is_of_tests(PurePosixPath(file).stem):
            module.children[name] = _tree(file, rust_source.read(files[file]), module, files, is_root=bool(given))
    for name, inner in source.inline.items():
        if not _is_of_tests(name):
            child = _Module(module.file, inner, module)
            _add_children(child, inner, folder / name, folder / name, files)
            module.children[name] = child


def _all(module: _Module) -> list[_Module]:
    return [module, *(inner for child in module.children.values() for inner in _all(child))]


def _of_module(module: _Module, macros: dict[str, _Module]) -> set[Import]:
    found = set()

    def add(segments: tuple[str, ...], line: int, text: str) -> None:
        target = _resolve(module, segments, macros)
        if target and target.file != module.file:
            found.add(Import(module.file, target.file, line, text))

    for use in module.source.uses:
        if use.name == "*":
            target = _resolve(module, use.path, macros)
            for name, line in module.source.words.items() if target else ():
                if name in module.source.items or module.uses_of(name) or name in module.children:
                    continue
                if _has(target, name):
                    add((*use.path, name), line, f"use {'::'.join(use.path)}::* ({name})")
        elif not _is_facade(module, use, macros):
            add(use.path, use.line, f"use {'::'.join(use.path)}")
    for path in module.source.paths:
        add(path.segments, path.line, "::".join(path.segments))
    return found


def _is_facade(module: _Module, use: Use, macros: dict[str, _Module]) -> bool:
    """Whether the name only passes through here.

    A module passes through: its items count where they are named. So does a child's item that is re-exported and not
    used here.
    """
    target = _exact_module(module, use.path, macros)
    if target is not None:
        return use.is_public or use.name in {path.segments[0] for path in module.source.paths}
    definer = _resolve(module, use.path, macros)
    is_child = definer is not None and module in _ancestors(definer)
    return use.is_public and is_child and use.name not in module.source.words


def _ancestors(module: _Module) -> list[_Module]:
    return [module.parent, *_ancestors(module.parent)] if module.parent else []


def _has(module: _Module | None, name: str) -> bool:
    return module is not None and (name in module.source.items or name in module.children or bool(module.uses_of(name)))


def _exact_module(module: _Module, segments: tuple[str, ...], macros: dict[str, _Module]) -> _Module | None:
    """The module that the path names, if it names a module."""
    found = _walk(module, segments, macros, 0)
    return found[0] if found and found[1] else None


def _resolve(module: _Module, segments: tuple[str, ...], macros: dict[str, _Module]) -> _Module | None:
    """The module that defines the path's item; None for other crates."""
    found = _walk(module, segments, macros, 0)
    return found[0] if found else None


def _walk(
    module: _Module, segments: tuple[str, ...], macros: dict[str, _Module], depth: int
) -> tuple[_Module, bool] | None:
    """The module, and whether the path ends with the module itself."""
    if depth > _DEPTH_MAX or not segments:
        return None
    here, rest = module, list(segments)
    if rest[0] == "crate":
        here = module.root
        rest.pop(0)
        if len(rest) == 1 and rest[0] in macros and not _has(here, rest[0]):
            return macros[rest[0]], False
    elif rest[0] in ("self", "super"):
        while rest and rest[0] in ("self", "super"):
            if rest.pop(0) == "super":
                if here.parent is None:
                    return None
                here = here.parent
    elif not (rest[0] in here.children or here.uses_of(rest[0])):
        return None  # another crate, an item of this file, or a name of the prelude
    while rest:
        name = rest[0]
        if name in here.children:
            here = here.children[name]
            rest.pop(0)
            continue
        if name in here.source.items:
            return here, False
        return _through_uses(here, rest, macros, depth)
    return here, True


def _through_uses(
    here: _Module, rest: list[str], macros: dict[str, _Module], depth: int
) -> tuple[_Module, bool] | None:
    """Follow `use` declarations of `here`; a name that nobody declares was made by a macro of `here`."""
    for use in here.uses_of(rest[0]):
        if use.path[:1] == (rest[0],) and len(use.path) == 1:
            return None  # `use serde;`
        found = _walk(here, (*use.path, *rest[1:]), macros, depth + 1)
        if found or not _is_of_crate(here, use.path):
            return found
    for use in here.uses_of("*"):
        target = _walk(here, use.path, macros, depth + 1)
        if target and target[1] and target[0] is not here and _has(target[0], rest[0]):
            return _walk(target[0], ("self", *rest), macros, depth + 1)
    return here, False


def _is_of_crate(here: _Module, path: tuple[str, ...]) -> bool:
    return path[0] in ("crate", "self", "super") or path[0] in here.children or bool(here.uses_of(path[0]))
