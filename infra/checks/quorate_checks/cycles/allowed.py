"""The table of cycles that are still allowed: it only ever shrinks, and a checkout without cycles has an empty one."""

from __future__ import annotations

import tomllib
from pathlib import Path

from quorate_checks.cycles.projects import Found

FILE = Path(__file__).resolve().parents[2] / "tidy" / "allowed_cycles.toml"

Table = dict[str, list[frozenset[str]]]  # package → members of each cycle

_HEAD = """\
# Import cycles that are still allowed, by package. Each row is a cycle: files, or siblings, that import one another.
# A cycle may lose members and may fall apart; no row is ever added. `quorate-checks cycles --lower` shrinks the table.
"""


def read(file: Path = FILE) -> Table:
    rows = tomllib.loads(file.read_text()) if file.exists() else {}
    return {package: [frozenset(members) for members in cycles] for package, cycles in rows.items()}


def is_allowed(found: Found, table: Table) -> bool:
    """A cycle is allowed as a part of one that the table has."""
    return any(set(found.names) <= members for members in table.get(found.package, []))


def lowered(found: list[Found], table: Table) -> Table:
    """The allowed cycles of today."""
    result: Table = {}
    for one in found:
        if is_allowed(one, table):
            result.setdefault(one.package, []).append(frozenset(one.names))
    return result


def write(table: Table, file: Path = FILE) -> None:
    lines = [_HEAD]
    for package, cycles in sorted(table.items()):
        lines.append(f'"{package}" = [')
        for members in sorted(cycles, key=lambda members: (-len(members), sorted(members))):
            lines += ["    [", *(f'        "{name}",' for name in sorted(members)), "    ],"]
        lines.append("]")
    file.write_text("\n".join(lines).rstrip("\n") + "\n")
