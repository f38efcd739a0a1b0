"""Terraform runs the real thing: a project, a group, a key and the fleet's servers, until nothing is left."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from quorate.group import connect_group
from quorate_local import Stack, StackOptions
from quorate_local.options import REPOSITORY
from quorate_scenarios.customer import Customer

FOLDER = REPOSITORY / "build" / "e2e"
PROVIDER = REPOSITORY / "build" / "bin" / "terraform-provider-quorate"
COMMAND_TIMEOUT_S = 150
SERVERS = ["s1", "s2", "s3", "s4"]
ENTRIES = 100

CONFIGURATION = """
terraform {
  required_providers { quorate = { source = "quorate/quorate" } }
}
variable "rate_per_s" { default = 500 }
variable "servers" { type = set(string) }
locals {
  sla = { durability = "persistent", replication_degree = 3, request_size_bytes = 64 }
}
data "quorate_quote" "orders" {
  durability         = local.sla.durability
  replication_degree = local.sla.replication_degree
  request_size_bytes = local.sla.request_size_bytes
  rate_per_s         = var.rate_per_s
}
resource "quorate_project" "shop" { name = "shop" }
resource "quorate_group" "orders" {
  project_id         = quorate_project.shop.id
  name               = "orders"
  durability         = local.sla.durability
  replication_degree = local.sla.replication_degree
  request_size_bytes = local.sla.request_size_bytes
  rate_per_s         = var.rate_per_s
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


@dataclass
class Terraform:
    """Terraform in a folder of its own, with the provider that `make build` built and no other."""

    folder: Path
    env: dict[str, str]

    def run(self, *arguments: str, expect: int = 0, **env: str) -> str:
        done = subprocess.run(
            ["terraform", *arguments, "-no-color"],
            cwd=self.folder,
            env=self.env | env,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == expect, said
        return " ".join(said.replace("│", " ").split())

    def apply(self, servers: list[str]) -> None:
        self.run("apply", "-auto-approve", f"-var=servers={json.dumps(servers)}")

    def output(self, name: str) -> str:
        found = subprocess.run(
            ["terraform", "output", "-json", name],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            timeout=30,
            check=True,
        )
        return str(json.loads(found.stdout))


@dataclass
class Operator:
    api_url: str
    token: str

    def servers(self) -> dict[str, dict[str, Any]]:
        answer = httpx2.get(
            f"{self.api_url}/v1/operator/servers", headers={"Authorization": f"Bearer {self.token}"}, timeout=15
        )
        assert answer.status_code == 200, answer.text
        return {server["name"]: server for server in answer.json()["items"]}


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
        terraform = _terraform(tmp_path, stack.api_url, key, token)

        terraform.apply(SERVERS)
        group_id, secret = terraform.output("group_id"), terraform.output("secret")
        _append(stack.api_url, secret, group_id)
        everything = f"-var=servers={json.dumps(SERVERS)}"
        terraform.run("plan", "-detailed-exitcode", everything)  # exit code 0: nothing has drifted

        said = terraform.run("plan", everything, "-var=rate_per_s=90000000", expect=1)
        assert "Scarce: " in said
        said = terraform.run("plan", everything, expect=1, QUORATE_API_KEY=secret, QUORATE_OPERATOR_TOKEN=key)
        assert "the credential is wrong" in said, "a customer's key opens nothing of the fleet"

        before = operator.servers()
        goes = next(name for name, server in before.items() if server["replicas"])
        terraform.apply([name for name in SERVERS if name != goes])
        after = operator.servers()
        assert after[goes]["drain"]["state"] == "drained"
        assert after[goes]["replicas"] == 0
        _append(stack.api_url, secret, group_id)
        assert _read(stack.api_url, secret, group_id) == [b"%d" % number for number in range(ENTRIES)] * 2

        terraform.run("destroy", "-auto-approve", everything)
        assert not [server for server in operator.servers().values() if server["replicas"]]
        assert [project["name"] for project in customer.get("/v1/projects")["items"]] == ["default"]
        assert httpx2.get(f"{stack.api_url}/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def _terraform(folder: Path, api_url: str, api_key: str, operator_token: str) -> Terraform:
    assert PROVIDER.exists(), "`make build` makes it"
    (folder / "main.tf").write_text(CONFIGURATION)
    installation = f'provider_installation {{ dev_overrides {{ "quorate/quorate" = "{PROVIDER.parent}" }} }}\n'
    (folder / "cli.tfrc").write_text(installation)
    env = {
        **os.environ,
        "TF_CLI_CONFIG_FILE": str(folder / "cli.tfrc"),
        "CHECKPOINT_DISABLE": "1",
        "QUORATE_ENDPOINT": api_url,
        "QUORATE_API_KEY": api_key,
        "QUORATE_OPERATOR_TOKEN": operator_token,
    }
    return Terraform(folder, env)


def _append(api_url: str, secret: str, group_id: str) -> None:
    async def append() -> None:
        async with await connect_group(api_url, secret, group_id, timeout=30.0) as client:
            for number in range(ENTRIES):
                await client.append(b"%d" % number)

    asyncio.run(append())


def _read(api_url: str, secret: str, group_id: str) -> list[bytes]:
    async def read() -> list[bytes]:
        found: list[bytes] = []
        async with await connect_group(api_url, secret, group_id, timeout=30.0) as client:
            while len(found) < 2 * ENTRIES:
                entries = (await client.read(len(found))).entries
                assert entries, f"the log ends at {len(found)}"
                found += [bytes(entry.data) for entry in entries]
        return found

    return asyncio.run(read())
