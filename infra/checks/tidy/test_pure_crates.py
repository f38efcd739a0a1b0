"""Pure crates have no socket, disk, clock, thread or randomness, by a dependency or by the standard library."""

import re
import tomllib
from pathlib import Path

CRATES = Path("services/crates")
# Each pure crate, and the pure crates that it may use. The map of the core: arrows go down, never up.
PURE = {
    "types": set[str](),
    "wire": {"types"},
    "usage": {"types"},
    "qos": {"types"},
    "placement": {"types"},
    "chain": {"types", "wire"},
    "policies": set[str](),
    "burst": {"types", "wire", "policies"},
    "guarantees": {"types", "policies"},
    "weights": {"types"},
    "group": {"types", "wire", "usage", "qos", "chain", "burst"},
    "quorum": {"types", "wire"},
    "storage/record-file": set[str](),
    "coordinator-core": {"types", "placement", "guarantees", "weights", "quorum", "storage/record-file"},
}
# Linear programs by microlp are functions as well: it looks at the time only for a limit, and none is set.
LIBRARIES = {"bytes", "crc32fast", "microlp", "serde", "serde_json", "serde_path_to_error", "thiserror", "time", "uuid"}
# Addresses are data.
IMPURE = re.compile(r"\bstd::(net::(?!Ip)|fs|thread|process|env)\b|\b(Instant|SystemTime)::now\b|\bnow_(utc|local)\b")


def test_pure_crates_depend_on_pure_crates(repository: Path) -> None:
    for crate, below in PURE.items():
        manifest = tomllib.loads((repository / CRATES / crate / "Cargo.toml").read_text())
        allowed = LIBRARIES | {f"quorate-{Path(name).name}" for name in below}
        beyond = set(manifest.get("dependencies", {})) - allowed
        assert not beyond, f"{crate} is pure and depends on {sorted(beyond)}; give it what it needs as input"


def test_pure_crates_use_no_device_of_the_standard_library(texts: dict[Path, str]) -> None:
    sources = {path: text for path, text in texts.items() if path.suffix == ".rs" and _crate_of(path) in PURE}
    assert len(sources) > len(PURE), "no sources were found: the folders above are wrong"
    found = [f"{path}: {use.group()}" for path, text in sources.items() if (use := IMPURE.search(text))]
    assert not found, "\n".join(found)


def _crate_of(path: Path) -> str | None:
    """The crate whose `src` the file is in."""
    crate, src, _ = path.as_posix().removeprefix(f"{CRATES}/").partition("/src/")
    return crate if src else None
