"""The README's examples do what they say, on the real stack."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Owner
from quorate_local import Stack
from quorate_local.options import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
RUNNERS = {"python": [sys.executable], "js": ["node"]}
SDK_JS = REPOSITORY / "sdk" / "js" / "dist" / "index.js"


def example(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert found.strip().count("\n") <= 12, "the example has about ten lines"
    return str(found)


@pytest.mark.parametrize("language", ["python", "js"])
def test_the_example_appends_and_reads_its_own_entry(language: str, alice: Owner, tmp_path: Path) -> None:
    code = example(language).replace('"quorate"', f'"{SDK_JS.as_uri()}"')
    program = tmp_path / ("example.mjs" if language == "js" else "example.py")
    program.write_text(code)
    env = {
        **os.environ,
        "QUORATE_API_URL": alice.customer.api_url,
        "QUORATE_API_KEY": alice.customer.api_key,
        "QUORATE_GROUP_ID": alice.groups["persistent"]["id"],
    }
    command = [*RUNNERS[language], str(program)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\d+ order 4711 paid\n", done.stdout)


def test_the_command_that_buys_the_first_group_prints_what_the_examples_read(stack: Stack) -> None:
    [module] = re.findall(r"python -m (\S+) http", README)
    command = [sys.executable, "-m", module, stack.api_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    exported = re.findall(r"^export (\w+)=\S+$", done.stdout, re.MULTILINE)
    assert exported == ["QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"]
