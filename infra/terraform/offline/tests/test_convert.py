"""The converter, against facts of the providers' documentation that do not come from the packages."""

from __future__ import annotations

from typing import Any

import pytest

from quorate_offline import convert, mirror, packages


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    files = list(mirror.TERRAFORM.glob("modules/*/*.tf"))
    locked = packages.locked()
    return {
        provider: mirror.schemas(locked[provider], used)
        for provider, used in mirror.used(files).items()
        if provider in locked
    }


def _block(found: dict[str, dict[str, Any]], provider: str, resource: str) -> dict[str, Any]:
    block: dict[str, Any] = found[provider]["resources"][f"{provider}_{resource}"]["block"]
    return block


def test_attributes_have_their_types_and_duties(found: dict[str, dict[str, Any]]) -> None:
    machine = _block(found, "azurerm", "linux_virtual_machine")["attributes"]
    assert machine["size"] == {"type": "string", "required": True}
    assert machine["network_interface_ids"] == {"type": ["list", "string"], "required": True}
    assert machine["custom_data"] == {"type": "string", "optional": True}
    assert machine["private_ip_addresses"] == {"type": ["list", "string"], "computed": True}
    assert machine["tags"] == {"type": ["map", "string"], "optional": True}
    interface = _block(found, "aws", "network_interface")["attributes"]
    assert interface["security_groups"] == {"type": ["set", "string"], "computed": True, "optional": True}
    network = _block(found, "google", "compute_network")["attributes"]
    assert network["auto_create_subnetworks"] == {"type": "bool", "optional": True}
    assert network["mtu"] == {"type": "number", "computed": True, "optional": True}


def test_blocks_have_their_nesting_and_bounds(found: dict[str, dict[str, Any]]) -> None:
    machine = _block(found, "azurerm", "linux_virtual_machine")["block_types"]
    assert (machine["os_disk"]["nesting_mode"], machine["os_disk"]["min_items"], machine["os_disk"]["max_items"]) == (
        "list",
        1,
        1,
    )
    assert machine["admin_ssh_key"]["nesting_mode"] == "set"
    assert "max_items" not in machine["admin_ssh_key"]
    assert machine["timeouts"]["nesting_mode"] == "single"
    assert machine["os_disk"]["block"]["attributes"]["caching"] == {"type": "string", "required": True}
    instance = _block(found, "google", "compute_instance")["block_types"]
    assert instance["network_interface"]["min_items"] == 1
    assert "max_items" not in instance["network_interface"]
    boot = instance["boot_disk"]["block"]["block_types"]["initialize_params"]
    assert boot["block"]["attributes"]["provisioned_iops"]["type"] == "number"


def test_providers_have_their_own_arguments(found: dict[str, dict[str, Any]]) -> None:
    assert found["azurerm"]["provider"]["block"]["block_types"]["features"]["nesting_mode"] == "list"
    assert found["aws"]["provider"]["block"]["attributes"]["region"] == {"type": "string", "optional": True}
    assert found["google"]["version"].startswith("6.")


def test_what_it_does_not_understand_it_says() -> None:
    with pytest.raises(convert.NotUnderstood):
        convert.schema("export class Nothing {}  // without a source map", "aws_nothing")
