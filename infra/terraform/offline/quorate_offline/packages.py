"""The npm packages that hold the clouds' schemas: fetched as archives, checked against the lock, never installed.

Unpacked they are a gigabyte. The archives are a tenth of that, and a few files are read from each.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
FETCH_TIMEOUT_S = 240


class Unavailable(Exception):
    """npm cannot fetch a package, or the fetched one differs from the lock's."""


@dataclass(frozen=True)
class Package:
    """A locked package. `integrity` as in npm: an algorithm, a dash, base64."""

    name: str
    version: str
    integrity: str

    @property
    def provider(self) -> str:
        return self.name.removeprefix("@cdktf/provider-")


def locked() -> dict[str, Package]:
    """The locked packages by provider: `aws`, `azurerm`, `google`."""
    entries = json.loads((HERE / "package-lock.json").read_text())["packages"]
    found = [
        Package(path.removeprefix("node_modules/"), entry["version"], entry["integrity"])
        for path, entry in entries.items()
        if path.startswith("node_modules/@cdktf/provider-")
    ]
    return {package.provider: package for package in found}


def folders(package: Package, wanted: Iterable[str]) -> dict[str, str]:
    """The JavaScript in each of the folders `lib/<name>`, by name, without absent folders."""
    names = set(wanted)
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder, tarfile.open(_fetch(package, Path(folder))) as archive:
        for member in archive:
            parts = Path(member.name).parts  # package/lib/<name>/…
            if len(parts) < 4 or parts[1] != "lib" or parts[2] not in names or not member.name.endswith(".js"):
                continue
            stream = archive.extractfile(member)
            if stream is not None:
                found.setdefault(parts[2], []).append(stream.read().decode())
    return {name: "\n".join(texts) for name, texts in found.items()}


def _fetch(package: Package, folder: Path) -> Path:
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), f"{package.name}@{package.version}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False, cwd=folder)
    except FileNotFoundError as error:
        raise Unavailable("npm is not in PATH") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"npm did not fetch {package.name} within {FETCH_TIMEOUT_S} s") from error
    archives = list(folder.glob("*.tgz"))
    if done.returncode != 0 or len(archives) != 1:
        raise Unavailable(f"npm pack {package.name}@{package.version}: {done.stderr.strip()[-500:]}")
    check(archives[0].read_bytes(), package)
    return archives[0]


def check(archive: bytes, package: Package) -> None:
    """Raises `Unavailable` unless the archive has the lock's checksum."""
    algorithm, _, expected = package.integrity.partition("-")
    if base64.b64encode(hashlib.new(algorithm, archive).digest()).decode() != expected:
        raise Unavailable(f"{package.name}@{package.version} is not the archive that package-lock.json names")
