"""Python packages import what they declare, and the declared dependencies run one way."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

IMPORT = re.compile(r"^ *(?:from|import) (quorate\w*)", re.MULTILINE)
SHARED = "quorate-harness"  # the one package of `loadtest/` that others there may import


@dataclass(frozen=True)
class Package:
    name: str
    folder: Path
    declared: frozenset[str]
    imported: frozenset[str]


@pytest.fixture(scope="session")
def packages(texts: dict[Path, str]) -> list[Package]:
    found = []
    for path, text in texts.items():
        settings = tomllib.loads(text) if path.name == "pyproject.toml" else {}
        project = settings.get("project")
        if project:
            name, folder = project["name"], path.parent
            imports = set[str]()
            for source, code in texts.items():
                if source.suffix == ".py" and source.is_relative_to(folder) and name.replace("-", "_") in source.parts:
                    imports |= set(IMPORT.findall(code))
            ours = {module.replace("_", "-") for module in imports} - {name}
            wanted = project.get("dependencies", []) + _listed(settings, folder, texts)
            declared = {re.split(r"[^\w-]", each)[0] for each in wanted}
            found.append(Package(name, folder, frozenset(declared), frozenset(ours)))
    return found


def _listed(settings: dict[str, Any], folder: Path, texts: dict[Path, str]) -> list[str]:
    """Dependencies that stand in files beside `pyproject.toml`."""
    dynamic = settings.get("tool", {}).get("setuptools", {}).get("dynamic", {})
    files = dynamic.get("dependencies", {}).get("file", [])
    return [line for name in files for line in texts[folder / name].splitlines() if line and line[0] not in "#-"]


def test_packages_were_found(packages: list[Package]) -> None:
    assert {"quorate-local", SHARED, "quorate-bench"} <= {package.name for package in packages}
    assert any(SHARED in package.imported for package in packages)


def test_every_import_of_another_package_is_declared(packages: list[Package]) -> None:
    missing = {p.name: sorted(p.imported - p.declared) for p in packages if p.imported - p.declared}
    assert not missing


def test_every_declared_package_of_ours_is_imported(packages: list[Package]) -> None:
    ours = {package.name for package in packages}
    unused = {p.name: sorted((p.declared & ours) - p.imported) for p in packages}
    assert not {name: stale for name, stale in unused.items() if stale}


def test_load_tests_do_not_import_one_another(packages: list[Package]) -> None:
    siblings = {package.name for package in packages if package.folder.parts[0] == "loadtest"} - {SHARED}
    assert len(siblings) >= 5
    crossed = {
        p.name: sorted(p.imported & siblings) for p in packages if p.name in siblings | {SHARED, "quorate-local"}
    }
    assert not {name: wrong for name, wrong in crossed.items() if wrong}


def test_packages_do_not_depend_on_themselves(packages: list[Package]) -> None:
    needs = {package.name: package.imported for package in packages}
    for start in needs:
        reached, frontier = set[str](), set(needs[start])
        while frontier:
            reached |= frontier
            frontier = {further for name in frontier for further in needs.get(name, ())} - reached
        assert start not in reached, f"{start} imports itself by way of {sorted(reached)}"
