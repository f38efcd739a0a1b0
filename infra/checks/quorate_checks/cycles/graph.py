"""Imports between files, and the cycles among them. Pure.

An import cycle is a strongly connected component of two files or more. The figure counts it once, however many loops
it has. The report shows a shortest loop through each of its imports.

Siblings form cycles too: two folders, or a folder and a file beside it, whose files import from one another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

_PACKAGE_FILES = {"mod.rs", "lib.rs", "main.rs", "__init__.py"}  # each speaks for its folder


@dataclass(frozen=True, order=True)
class Import:
    """The file `source` names something of the file `target` in this line."""

    source: str
    target: str
    line: int
    text: str = ""  # as it stands in the source

    @property
    def ends(self) -> tuple[str, str]:
        return self.source, self.target


Loop = tuple[Import, ...]


@dataclass(frozen=True)
class Cycle:
    """`members`: files or, where `is_of_siblings`, siblings without their endings."""

    members: tuple[str, ...]
    loops: tuple[Loop, ...]
    is_of_siblings: bool = False


def cycles(imports: Iterable[Import]) -> list[Cycle]:
    """Cycles of files, the largest first."""
    return _cycles(list(imports), _files_of, is_of_siblings=False)


def folder_cycles(imports: Iterable[Import]) -> list[Cycle]:
    """Cycles of siblings, at least one of them a folder, the largest first."""
    by_parent: dict[str, list[Import]] = {}
    for one in imports:
        siblings = _siblings(one)
        if siblings:
            by_parent.setdefault(str(PurePosixPath(siblings[0]).parent), []).append(one)
    found = []
    for inside in by_parent.values():
        pairs = [pair for one in inside for pair in zip(one.ends, _siblings_in(one), strict=True)]
        folders = {sibling for path, sibling in pairs if path.startswith(f"{sibling}/")}
        found += [cycle for cycle in _cycles(inside, _siblings_in, is_of_siblings=True) if folders & set(cycle.members)]
    return sorted(found, key=_largest_first)


def package_cycles(imports: Iterable[Import], package_of: Callable[[str], str]) -> list[Cycle]:
    """Cycles of packages, the largest first."""

    def packages(one: Import) -> tuple[str, str]:
        return package_of(one.source), package_of(one.target)

    return _cycles(list(imports), packages, is_of_siblings=True)


def _files_of(one: Import) -> tuple[str, str]:
    return one.ends


def _siblings_in(one: Import) -> tuple[str, str]:
    siblings = _siblings(one)
    assert siblings is not None
    return siblings


def _siblings(one: Import) -> tuple[str, str] | None:
    """The siblings where the two paths part; None where one path is the package file of the folder of both."""
    ours, theirs = (PurePosixPath(path).parts for path in one.ends)
    depth = next((at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), 0)
    source, target = ours[: depth + 1], theirs[: depth + 1]
    if source[-1] in _PACKAGE_FILES or target[-1] in _PACKAGE_FILES:
        return None
    ends = str(PurePosixPath(*source).with_suffix("")), str(PurePosixPath(*target).with_suffix(""))
    return ends if ends[0] != ends[1] else None


def _cycles(imports: list[Import], ends: Callable[[Import], tuple[str, str]], is_of_siblings: bool) -> list[Cycle]:
    first: dict[str, dict[str, Import]] = {}
    for one in sorted(imports, key=lambda one: (ends(one), one)):
        source, target = ends(one)
        if source != target:
            first.setdefault(source, {}).setdefault(target, one)
    found = []
    for members in _components({node: list(targets) for node, targets in first.items()}):
        inside = {node: {to: one for to, one in first[node].items() if to in members} for node in members}
        found.append(Cycle(tuple(sorted(members)), _loops(inside), is_of_siblings))
    return sorted(found, key=_largest_first)


def _largest_first(cycle: Cycle) -> tuple[int, tuple[str, ...]]:
    return -len(cycle.members), cycle.members


def _components(edges: dict[str, list[str]]) -> list[set[str]]:
    """Strongly connected components of two nodes or more (Tarjan 1972, without recursion)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found = []
    for start in edges:
        if start in order:
            continue
        work = [(start, iter(edges.get(start, ())))]
        order[start] = low[start] = len(order)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(edges.get(target, ()))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    component = set(stack[stack.index(node) :])
                    del stack[stack.index(node) :]
                    on_stack -= component
                    if len(component) > 1:
                        found.append(component)
    return found


def _loops(edges: dict[str, dict[str, Import]]) -> tuple[Loop, ...]:
    """A shortest loop through each import, each loop once, the shortest first."""
    found: dict[frozenset[tuple[str, str]], Loop] = {}
    for source in sorted(edges):
        for target in sorted(edges[source]):
            way = _shortest(edges, target, source)
            loop = (edges[source][target], *way)
            found.setdefault(frozenset((one.source, one.target) for one in loop), loop)
    return tuple(sorted(found.values(), key=lambda loop: (len(loop), loop)))


def _shortest(edges: dict[str, dict[str, Import]], begin: str, end: str) -> list[Import]:
    before: dict[str, str] = {begin: begin}
    queue = deque([begin])
    while queue and end not in before:
        node = queue.popleft()
        for target in sorted(edges[node]):
            if target not in before:
                before[target] = node
                queue.append(target)
    way = []
    while end != begin:
        way.append(edges[before[end]][end])
        end = before[end]
    return way[::-1]
