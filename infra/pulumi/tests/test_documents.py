"""The programs in docs/operating/pulumi.md, as they are there, and their described results."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pulumi
import pytest
from engine import RESOURCE, run
from fake_api import PROJECT
from test_components import FLEET

from quorate import Handle

PAGE = Path(__file__).parents[3] / "docs/operating/pulumi.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
HANDLE = {
    "group_id": "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f",
    "endpoints": [{"server_id": 1, "address": "h:1", "role": "sole"}],
    "token": "t",
}


@pytest.fixture
def exported(api, mocks, monkeypatch):
    """Runs a program of the page. Returns its exports, and whether each is secret."""
    values = {
        "apiUrl": api.url,
        "apiKey": "qk_manage",
        "appKey": "qk_app",
        "project": PROJECT,
        "fleet": json.dumps(FLEET),
    }
    pulumi.runtime.set_all_config(
        {f"quorate:{name}": value for name, value in values.items()}, ["quorate:apiKey", "quorate:appKey"]
    )

    def of(program):
        outputs = {}
        monkeypatch.setattr(pulumi, "export", outputs.__setitem__)

        def body():
            exec(compile(program, str(PAGE), "exec"), {})
            return outputs

        return run(body)

    return of


def test_the_page_has_all_programs():
    made = [
        re.findall(r"^(?:\w+ = )?(Group|ProjectGuarantee|LoadTestGroups)\($", program, re.M) for program in PROGRAMS
    ]
    assert made == [["Group"], ["ProjectGuarantee"], ["LoadTestGroups"]]


def test_a_group_for_your_application(api, mocks, exported):
    found = exported(PROGRAMS[0])
    group_id, secret = found["group"]
    assert (list(api.groups), secret) == ([group_id], False)
    environment, secret = found["environment"]
    assert (environment["QUORATE_API_KEY"], environment["QUORATE_GROUP_ID"], secret) == ("qk_app", group_id, True)
    assert mocks.requests[RESOURCE, "orders"].protect


def test_a_guarantee_in_the_program_of_the_group(api, mocks, exported):
    exported(PROGRAMS[0] + PROGRAMS[1])
    (group_id,) = api.groups
    policy = {"name": "first_fit", "groups": [{"group_id": group_id}]}
    assert api.guarantees == {PROJECT: {"shared_tokens_per_s": 100_000, "max_tokens_per_s": None, "policy": policy}}


def test_a_load_tests_groups_and_their_files(api, mocks, exported, tmp_path):
    handles, secret = exported(PROGRAMS[2])["handles"]
    assert secret
    names = [f"bench-{number}" for number in range(1, 5)]
    assert sorted(group["name"] for group in api.groups.values()) == names
    finished = write(tmp_path / "handles", json.dumps(handles))
    assert finished.returncode == 0, finished.stderr
    files = sorted((tmp_path / "handles").iterdir())
    assert [file.name for file in files] == [f"{name}.json" for name in names]
    for file in files:
        assert file.stat().st_mode & 0o777 == 0o600
        assert str(Handle.parse(file.read_text()).group_id) in api.groups


def test_new_handles_take_the_place_of_old_ones_and_of_their_mode(tmp_path):
    (tmp_path / "a.json").write_text("old")
    (tmp_path / "a.json").chmod(0o644)
    assert write(tmp_path, json.dumps({"a": json.dumps(HANDLE)})).returncode == 0
    assert json.loads((tmp_path / "a.json").read_text()) == HANDLE
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "given", ["", "[]", '{"a": "{}"}', json.dumps({"../a": json.dumps(HANDLE)}), json.dumps({"": json.dumps(HANDLE)})]
)
def test_what_is_no_output_of_handles_writes_nothing(tmp_path, given):
    finished = write(tmp_path / "handles", given)
    assert finished.returncode == 1
    assert "stdin is not a stack's output `handles`" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "handles").exists()


def write(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quorate_pulumi.handles", str(folder)]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=False)
