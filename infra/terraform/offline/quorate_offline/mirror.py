"""A folder from which Terraform installs every provider of our modules without a network.

It has our own providers, and for each cloud's a stub with the schemas of the used resources."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorate_offline import convert, packages
from quorate_offline.packages import Package

TERRAFORM = packages.HERE.parent
REPOSITORY = TERRAFORM.parent.parent
BINARIES = Path(os.environ.get("QUORATE_BINARIES", REPOSITORY / "build" / "bin"))  # as in infra/local
STUB = packages.HERE / "stub"
OWN_PROVIDERS = {"quorate": TERRAFORM / "provider", "quorate-local": TERRAFORM / "provider-local"}
OWN_VERSION = "0.1.0"
BUILD_TIMEOUT_S = 600
DECLARATION = re.compile(r'^(resource|data)\s+"([a-z0-9]+)_(\w+)"', re.MULTILINE)
PROVIDER_VERSION = re.compile(r"providerVersion: '([0-9.]+)'")


class Missing(Exception):
    """A module names a resource that its provider lacks."""


@dataclass
class Used:
    """One provider's resources in the modules, without its prefix: `launch_template`."""

    resources: set[str] = field(default_factory=set)
    data_sources: set[str] = field(default_factory=set)

    def folders(self) -> dict[str, tuple[str, str]]:
        """Folder of the package → part of the schema, and name there."""
        found = {name.replace("_", "-"): ("resources", name) for name in self.resources}
        return found | {"data-" + name.replace("_", "-"): ("data_sources", name) for name in self.data_sources}


def used(configurations: Iterable[Path]) -> dict[str, Used]:
    """By provider: every resource and data source in these files."""
    found: dict[str, Used] = {}
    for path in configurations:
        for kind, provider, name in DECLARATION.findall(path.read_text()):
            of_provider = found.setdefault(provider, Used())
            (of_provider.resources if kind == "resource" else of_provider.data_sources).add(name)
    return found


def schemas(package: Package, wanted: Used) -> dict[str, Any]:
    """The package from the cache, or from npm. `version` is the provider's, not the package's."""
    names = sorted(wanted.folders())
    key = hashlib.sha256(json.dumps([package.integrity, names, Path(convert.__file__).read_text()]).encode())
    kept = _cache() / f"{package.provider}-{key.hexdigest()[:32]}.json"
    if not kept.exists():
        made = assemble(package, wanted, packages.folders(package, [*wanted.folders(), "provider"]))
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(made))
        fresh.replace(kept)
    found: dict[str, Any] = json.loads(kept.read_text())
    return found


def assemble(package: Package, wanted: Used, texts: Mapping[str, str]) -> dict[str, Any]:
    """The schemas that the stub serves. `texts`: the JavaScript of each folder of the package, and of `provider`."""
    parts = wanted.folders()
    absent = sorted(set(parts) - set(texts))
    if absent:
        raise Missing(f"{package.provider} has no {', '.join(absent)}")
    result: dict[str, Any] = {"resources": {}, "data_sources": {}}
    result["provider"] = convert.schema(texts["provider"], package.provider)
    for folder, (part, name) in parts.items():
        full = f"{package.provider}_{name}"
        result[part][full] = convert.schema(texts[folder], full)
        result["version"] = _version(texts[folder], package)
    return result


def _version(javascript: str, package: Package) -> str:
    found = PROVIDER_VERSION.search(convert.source(javascript))
    if not found:
        raise Missing(f"{package.name} does not say which version of {package.provider} it was made from")
    return found[1]


def _cache() -> Path:
    """A cache outside the checkout, as the Makefile's. Files are named by content, so every checkout shares them."""
    home = Path(os.environ.get("HOME", "")) / ".cache"
    writable = home.is_dir() and os.access(home, os.W_OK)
    return (home / "quorate" if writable else REPOSITORY / "build") / "terraform-schemas"


def platform() -> str:
    """This platform by Terraform's name, such as `linux_amd64`."""
    done = subprocess.run(["go", "env", "GOOS", "GOARCH"], capture_output=True, text=True, check=True, timeout=60)
    return "_".join(done.stdout.split())


def has_its_providers(folder: Path) -> bool:
    """Whether this checkout has our own providers that the configuration names."""
    text = "".join(path.read_text() for path in folder.glob("*.tf"))
    return all(source.is_dir() for name, source in OWN_PROVIDERS.items() if f'"quorate/{name}"' in text)


def build_go(folder: Path, program: Path) -> Path:
    """Builds the Go program of `folder`, by the sums in its go.sum."""
    command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-o", str(program), "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise Missing(f"{folder} does not build:\n{done.stderr}")
    return program


def make(root: Path, configurations: Iterable[Path]) -> dict[str, str]:
    """Fills `root`. Returns the environment with which Terraform installs from it only."""
    shutil.rmtree(root, ignore_errors=True)
    programs = root / "programs"
    programs.mkdir(parents=True)
    system = platform()
    stub = build_go(STUB, programs / "stub")
    locked = packages.locked()
    for provider, wanted in used(configurations).items():
        if provider in locked:
            found = schemas(locked[provider], wanted)
            _install(root, f"hashicorp/{provider}", found["version"], system, stub, found)
    for provider, folder in OWN_PROVIDERS.items():
        if folder.is_dir():
            _install(root, f"quorate/{provider}", OWN_VERSION, system, build_go(folder, programs / provider))
    settings = root / "terraform.rc"
    settings.write_text(f'provider_installation {{ filesystem_mirror {{ path = "{root}" }} }}\n')
    return {"TF_CLI_CONFIG_FILE": str(settings), "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}


def _install(
    root: Path, address: str, version: str, system: str, program: Path, found: Mapping[str, Any] | None = None
) -> None:
    folder = root / "registry.terraform.io" / address / version / system
    folder.mkdir(parents=True)
    os.link(program, folder / f"terraform-provider-{address.rpartition('/')[2]}_v{version}")
    if found is not None:
        (folder / "schema.json").write_text(json.dumps(found))
