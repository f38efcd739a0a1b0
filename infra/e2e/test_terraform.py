"""Terraform against a real stack: a project, a group, a key and the fleet's servers, until nothing is left."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from quorate.group import connect_group
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.options import REPOSITORY
from terraform_runner import Operator, runner

FOLDER = REPOSITORY / "build" / "e2e"
SERVERS = ["s1", "s2", "s3", "s4"]
ENTRIES = 100

CONFIGURATION = """
terraform {
  required_providers { quorate = { source = "quorate/quorate" } }
}
variable "rate_per_s" { default = 500 }
variable "servers" { type = set(string) }
variable "name" { default = "new" }
variable "protected" { default = true }
locals {
  sla = { durability = "persistent", replication_degree = 3, request_size_bytes = 64 }
}
data "quorate_quote" "orders" {
  durability         = local.sla.durability
  replication_degree = local.sla.replication_degree
  request_size_bytes = local.sla.request_size_bytes
  rate_per_s         = var.rate_per_s
}
resource "quorate_project" "shop" { name = "${var.name}-shop" }
resource "quorate_group" "orders" {
  project_id         = quorate_project.shop.id
  name               = "${var.name}-orders"
  durability         = local.sla.durability
  replication_degree = local.sla.replication_degree
  request_size_bytes = local.sla.request_size_bytes
  rate_per_s         = var.rate_per_s
  deletion_protection = var.protected
  lifecycle {
    precondition {
      condition     = data.quorate_quote.orders.admissible
      error_message = "Scarce: ${coalesce(data.quorate_quote.orders.scarce_resource, "nothing")}."
    }
  }
}
resource "quorate_api_key" "app" {
  project_id = quorate_project.shop.id
  name       = "app"
  scopes     = ["append", "read"]
}
resource "quorate_server" "fleet" {
  for_each               = var.servers
  name                   = each.key
  registration_timeout_s = 30
  drain_timeout_s        = 90
}
output "group_id" { value = quorate_group.orders.id }
output "secret" {
  value     = quorate_api_key.app.secret
  sensitive = true
}
"""


@pytest.fixture
def stack() -> Iterator[Stack]:
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not in PATH")
    stack = Stack(StackOptions.from_environment(state=FOLDER / "terraform", servers=len(SERVERS)))
    stack.wipe()
    with stack:
        yield stack


def test_from_an_empty_service_and_back(stack: Stack, tmp_path: Path) -> None:
    token = (stack.options.state / "secrets" / "operator-token").read_text().strip()
    operator = Operator(stack.api_url, token)
    with Customer(stack.api_url, "terraform") as customer:
        key = customer.post("/v1/organization/keys", {"name": "terraform"})["secret"]
        (tmp_path / "main.tf").write_text(CONFIGURATION)
        terraform = runner(tmp_path, stack.api_url, key, token)

        terraform.apply(f"-var=servers={json.dumps(SERVERS)}")
        group_id, secret = terraform.output("group_id"), terraform.output("secret")
        _append(stack.api_url, secret, group_id)
        everything = f"-var=servers={json.dumps(SERVERS)}"
        terraform.run("plan", "-detailed-exitcode", everything)  # exit code 0: nothing has drifted

        said = terraform.run("plan", everything, "-var=rate_per_s=90000000", expect=1)
        assert "Scarce: " in said
        said = terraform.run("plan", everything, expect=1, QUORATE_API_KEY=secret, QUORATE_OPERATOR_TOKEN=key)
        assert "the credential is wrong" in said, "a customer's key opens nothing of the fleet"

        said = terraform.run("destroy", "-auto-approve", everything, expect=1)
        assert "is protected from deletion" in said
        terraform.apply(everything, "-var=name=live")
        assert terraform.output("group_id") == group_id, "renamed in place, with its project"
        assert _read(stack.api_url, secret, group_id) == [b"%d" % number for number in range(ENTRIES)]
        terraform.apply(everything, "-var=name=live", "-var=protected=false")

        before = operator.servers()
        goes = next(name for name, server in before.items() if server["replicas"])
        staying = json.dumps([name for name in SERVERS if name != goes])
        terraform.apply(f"-var=servers={staying}", "-var=name=live", "-var=protected=false")
        after = operator.servers()
        assert after[goes]["drain"]["state"] == "drained"
        assert after[goes]["replicas"] == 0
        _append(stack.api_url, secret, group_id)
        assert _read(stack.api_url, secret, group_id, 2 * ENTRIES) == [b"%d" % number for number in range(ENTRIES)] * 2

        terraform.run("destroy", "-auto-approve", everything, "-var=name=live", "-var=protected=false")
        assert not [server for server in operator.servers().values() if server["replicas"]]
        assert [project["name"] for project in customer.get("/v1/projects")["items"]] == ["default"]
        assert httpx2.get(f"{stack.api_url}/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def _append(api_url: str, secret: str, group_id: str) -> None:
    async def append() -> None:
        async with await connect_group(api_url, secret, group_id, timeout=30.0) as client:
            for number in range(ENTRIES):
                await client.append(b"%d" % number)

    asyncio.run(append())


def _read(api_url: str, secret: str, group_id: str, count: int = ENTRIES) -> list[bytes]:
    async def read() -> list[bytes]:
        found: list[bytes] = []
        async with await connect_group(api_url, secret, group_id, timeout=30.0) as client:
            while len(found) < count:
                entries = (await client.read(len(found))).entries
                assert entries, f"the log ends at {len(found)}"
                found += [bytes(entry.data) for entry in entries]
        return found

    return asyncio.run(read())
