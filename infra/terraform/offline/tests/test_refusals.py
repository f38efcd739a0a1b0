"""Proof that these tests can fail: Terraform refuses each faulty configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Configuration
from quorate_offline import mirror, packages

Copy = Callable[[str], Configuration]

MISTAKES = [
    ("azure", "platform_fault_domain_count =", "platform_fault_domains_count =", "An argument named"),
    ("azure", "fault_domain_count = var.fault_domains", 'fault_domain_count = "two"', "a number is required"),
    ("azure", "  size = local.machine_type\n", "", 'The argument "size" is required'),
    ("azure", "  os_disk {", "  system_disk {", 'Blocks of type "system_disk" are not expected'),
    ("aws", '  interface_type = "efa"', '  nic_type = "efa"', "An argument named"),
    ("aws", "  iops = var.data_disk_speed.iops", '  iops = ["many"]', "number required"),
    ("aws", '  strategy = "cluster"\n', "", 'The argument "strategy" is required'),
    ("aws", "aws_placement_group.fleet.name", "aws_placement_group.fleet.title", "Unsupported attribute"),
    ("gcp", "  network_profile =", "  networking_profile =", "An argument named"),
    ("gcp", "    automatic_restart = true", '    automatic_restart = "perhaps"', "a bool is required"),
    ("gcp", "  machine_type = local.machine_type\n", "", 'The argument "machine_type" is required'),
]  # fmt: skip


@pytest.mark.parametrize(("module", "right", "wrong", "words"), MISTAKES)
def test_a_mistake_is_refused(copy: Copy, module: str, right: str, wrong: str, words: str) -> None:
    configuration = copy(f"modules/{module}")
    configuration.edit("main.tf", right, wrong)
    assert words in configuration.init().run("validate", expect=1)


@pytest.mark.parametrize(
    ("module", "right", "wrong", "words"),
    [
        ("azure", "= azurerm_availability_set.fleet.id", "= null", "all machines are in one availability set"),
        ("aws", 'interface_type = "efa"', 'interface_type = "interface"', "an Elastic Fabric Adapter"),
        ("aws", 'http_tokens = "required"', 'http_tokens = "optional"', "a session"),
        ("gcp", '"IRDMA"', '"GVNIC"', "one for RDMA"),
    ],
)
def test_a_module_that_breaks_its_promise_fails_its_tests(
    copy: Copy, module: str, right: str, wrong: str, words: str
) -> None:
    configuration = copy(f"modules/{module}")
    configuration.edit("main.tf", right, wrong)
    assert words in configuration.init().run("test", expect=1)


def test_the_stub_is_no_provider(copy: Copy) -> None:
    configuration = copy("modules/fleet")  # any folder will do
    (configuration.folder / "main.tf").write_text(
        'resource "aws_placement_group" "fleet" {\n  name = "fleet"\n  strategy = "cluster"\n}\n'
    )
    configuration.init().run("validate")
    assert "This is not the provider aws" in configuration.run("plan", expect=1)


def test_a_resource_that_a_provider_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('resource "aws_placement_troupe" "fleet" {}\n')
    wanted = mirror.used([tmp_path / "main.tf"])["aws"]
    assert wanted.resources == {"placement_troupe"}
    with pytest.raises(mirror.Missing, match="placement-troupe"):
        mirror.assemble(packages.locked()["aws"], wanted, {"provider": ""})


def test_an_archive_that_is_not_the_locked_one() -> None:
    with pytest.raises(packages.Unavailable, match="not the archive"):
        packages.check(b"something else", packages.locked()["aws"])
