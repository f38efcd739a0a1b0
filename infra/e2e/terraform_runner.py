"""Runs Terraform with the providers of `make build`, and reads the results from the API."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from quorate_local.options import REPOSITORY

PROVIDERS = {name: REPOSITORY / "build" / "bin" / f"terraform-provider-{name}" for name in ("quorate", "quorate-local")}
COMMAND_TIMEOUT_S = 150


@dataclass
class Terraform:
    """Terraform in a folder of its own, with the provider of `make build` and no other."""

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

    def apply(self, *arguments: str) -> str:
        return self.run("apply", "-auto-approve", *arguments)

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

    def join_tokens(self) -> list[dict[str, Any]]:
        answer = httpx2.get(
            f"{self.api_url}/v1/operator/join-tokens", headers={"Authorization": f"Bearer {self.token}"}, timeout=15
        )
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])


def runner(folder: Path, api_url: str, api_key: str, operator_token: str) -> Terraform:
    """For the configuration in `folder`."""
    overrides = []
    for name, path in PROVIDERS.items():
        assert path.exists(), "`make build` makes it"
        overrides.append(f'"quorate/{name}" = "{path.parent}"')
    (folder / "cli.tfrc").write_text(
        f"provider_installation {{ dev_overrides {{ {chr(10).join(['', *overrides, ''])} }} }}\n"
    )
    env = {
        **os.environ,
        "TF_CLI_CONFIG_FILE": str(folder / "cli.tfrc"),
        "CHECKPOINT_DISABLE": "1",
        "QUORATE_ENDPOINT": api_url,
        "QUORATE_API_KEY": api_key,
        "QUORATE_OPERATOR_TOKEN": operator_token,
    }
    return Terraform(folder, env)
