"""Terraform's JSON contract: the fields that are read, and the refusal of invalid ones by name."""

import copy
import json
import re
from pathlib import Path

import pytest

from quorate_pulumi import FleetContract, FleetContractError
from quorate_pulumi.fleet import VERSION, Server

GOOD = {
    "version": 1,
    "region": "eu-north-1",
    "rdma": {"kind": "efa", "device": None, "ordered": False},
    "servers": {"s1": {"id": 7, "address": "10.4.0.4:7400"}},
}
MODULE = Path(__file__).parents[2] / "terraform/modules/fleet/main.tf"


def without(*path):
    changed = copy.deepcopy(GOOD)
    holder = changed
    for name in path[:-1]:
        holder = holder[name]
    del holder[path[-1]]
    return changed


def test_reads_what_terraform_writes():
    found = FleetContract.parse(json.dumps(GOOD))
    assert (found.region, found.rdma_kind, found.rdma_ordered) == ("eu-north-1", "efa", False)
    assert found.servers == {"s1": Server(7, "10.4.0.4:7400")}


def test_further_fields_do_not_matter():
    assert FleetContract.parse({**GOOD, "zone": "a"}) == FleetContract.parse(GOOD)


@pytest.mark.parametrize(
    "path",
    [
        ("version",),
        ("region",),
        ("rdma",),
        ("rdma", "kind"),
        ("rdma", "ordered"),
        ("servers",),
        ("servers", "s1", "id"),
        ("servers", "s1", "address"),
    ],
)
def test_a_missing_field_is_named(path):
    with pytest.raises(FleetContractError, match=f"^quorate_fleet lacks {re.escape('.'.join(path))}$"):
        FleetContract.parse(without(*path))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({**GOOD, "version": 2}, "quorate_fleet.version is 2, and this package understands 1"),
        ({**GOOD, "version": True}, "quorate_fleet.version is not a whole number"),
        ({**GOOD, "region": None}, "quorate_fleet.region is not text: None"),
        ({**GOOD, "servers": {}}, "quorate_fleet.servers is empty"),
        ({**GOOD, "servers": {"s1": "here"}}, "quorate_fleet.servers.s1 is not an object"),
        ("{", "quorate_fleet is not JSON"),
        ("[]", "quorate_fleet is not a JSON object"),
    ],
)
def test_what_is_not_understood_is_refused(source, message):
    with pytest.raises(FleetContractError, match=re.escape(message)):
        FleetContract.parse(source)


def test_the_module_writes_this_version_and_these_fields():
    output = MODULE.read_text().partition('output "quorate_fleet"')[2]
    assert int(re.search(r"version = (\d+)", output)[1]) == VERSION
    assert re.findall(r"^    (\w+) +=", output, re.MULTILINE) == list(GOOD)
    assert re.search(r"=> \{ id = \S+, address = \S+ \}", output)
    rdma = re.search(r'variable "rdma" .*?object\(\{(.*?)\}\)', MODULE.read_text(), re.DOTALL)[1]
    assert re.findall(r"(\w+) = ", rdma) == list(GOOD["rdma"])
