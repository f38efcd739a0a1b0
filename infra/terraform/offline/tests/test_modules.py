"""Every module and environment: formatted, valid against its providers' schemas, and passing its own tests."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Configuration, configurations
from quorate_offline import mirror

CLOUDS = ["azure", "aws", "gcp"]
VARIABLE = re.compile(r'^variable "(\w+)"', re.MULTILINE)
OUTPUT = re.compile(r'^output "(\w+)"', re.MULTILINE)

Copy = Callable[[str], Configuration]


def test_configurations_are_formatted() -> None:
    done = subprocess.run(
        ["terraform", "fmt", "-check", "-diff", "-recursive", "modules", "envs", "shared"],
        cwd=mirror.TERRAFORM, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"`terraform fmt -recursive` mends it:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("folder", configurations(), ids=str)
def test_it_passes_its_own_tests(copy: Copy, folder: Path) -> None:
    if not mirror.has_its_providers(mirror.TERRAFORM / folder):
        pytest.skip("a provider of ours that it names is not in this checkout")
    configuration = copy(str(folder)).init()
    configuration.run("validate")
    said = configuration.run("test")
    passed = re.search(r"Success! (\d+) passed", said)
    assert passed, f"{folder} has no tests: {said}"
    assert int(passed[1]) > 0


def test_places_for_machines_have_the_same_inputs_and_outputs() -> None:
    modules = mirror.TERRAFORM / "modules"
    for file, folders in (("inputs.tf", [*CLOUDS, "compute-local"]), ("machines.tf", CLOUDS)):
        shared = VARIABLE.findall((mirror.TERRAFORM / "shared" / file).read_text())
        assert shared
        for folder in folders:
            assert VARIABLE.findall((modules / folder / file).read_text()) == shared, f"{folder}/{file}"
    outputs = {
        tuple(OUTPUT.findall((modules / folder / "outputs.tf").read_text())) for folder in [*CLOUDS, "compute-local"]
    }
    assert outputs == {("instances", "addresses", "rdma")}
