"""The crates, packages and modules of a checkout, each with its imports and the cycles among them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from quorate_checks import checkout
from quorate_checks.cycles import graph, python, rust, typescript
from quorate_checks.cycles.graph import Cycle

_CRATE_ROOTS = ("src/lib.rs", "src/main.rs")
_OF_TESTS = {"e2e", "test", "tests"}


@dataclass(frozen=True)
class Found:
    """`package`: its folder, empty for a cycle of packages. Paths of the cycle are relative to the checkout."""

    package: str
    cycle: Cycle

    @property
    def names(self) -> tuple[str, ...]:
        """Members, relative to the package."""
        return tuple(name.removeprefix(f"{self.package}/") for name in self.cycle.members)


@dataclass(frozen=True)
class Survey:
    modules: int
    imports: int
    found: list[Found]


def survey(root: Path) -> Survey:
    """Every Rust crate, Python package and TypeScript project of the checkout."""
    names = checkout.files(root, [])
    texts = {name: (root / name).read_text() for name in names if name.endswith((".rs", ".py", ".ts", ".tsx"))}
    parts = [*_crates(names, texts), _python(names, texts), *_typescript(root, names, texts)]
    return Survey(
        sum(part.modules for part in parts),
        sum(part.imports for part in parts),
        [found for part in parts for found in part.found],
    )


def _crates(names: list[str], texts: dict[str, str]) -> Iterable[Survey]:
    for manifest in names:
        folder, _, name = manifest.rpartition("/")
        if name != "Cargo.toml":
            continue
        sources = {path: text for path, text in texts.items() if path.startswith(f"{folder}/src/")}
        binaries = [path for path in sources if path.startswith(f"{folder}/src/bin/")]
        roots = [path for root in _CRATE_ROOTS if (path := f"{folder}/{root}") in sources] + binaries
        imports = sorted({one for root in roots for one in rust.imports(sources, root)})
        cycles = graph.cycles(imports) + graph.folder_cycles(imports)
        yield Survey(len(sources), len(imports), [Found(folder, cycle) for cycle in cycles])


def _python(names: list[str], texts: dict[str, str]) -> Survey:
    """All packages at once: files of several may form a cycle, and so may whole packages."""
    modules = {path: text for path, text in texts.items() if python.is_module(path)}
    imports = python.imports(modules)
    packages = [name.removesuffix("/pyproject.toml") for name in names if name.endswith("/pyproject.toml")]

    def package_of(path: str) -> str:
        holding = [folder for folder in packages if path.startswith(f"{folder}/")]
        return max(holding, key=len, default=str(PurePosixPath(path).parent))

    inside = [one for one in imports if package_of(one.source) == package_of(one.target)]
    found = [Found(package_of(cycle.members[0]), cycle) for cycle in graph.cycles(imports)]
    found += [Found(package_of(f"{cycle.members[0]}/"), cycle) for cycle in graph.folder_cycles(inside)]
    found += [Found("", cycle) for cycle in graph.package_cycles(imports, package_of)]
    return Survey(len(modules), len(imports), found)


def _typescript(root: Path, names: list[str], texts: dict[str, str]) -> Iterable[Survey]:
    for settings in names:
        folder, _, name = settings.rpartition("/")
        if name != "tsconfig.json":
            continue
        paths = json.loads((root / settings).read_text())["compilerOptions"].get("paths", {})
        aliases = {
            prefix.removesuffix("*"): f"{folder}/{targets[0].removeprefix('./').removesuffix('*')}"
            for prefix, targets in paths.items()
        }
        modules = {
            path: text
            for path, text in texts.items()
            if path.startswith(f"{folder}/") and typescript.is_module(path) and not _OF_TESTS & set(path.split("/"))
        }
        imports = typescript.imports(modules, aliases)
        yield Survey(len(modules), len(imports), [Found(folder, cycle) for cycle in graph.cycles(imports)])
