"""The conformance scenarios of all SDKs, each against a fake group of its own."""

import asyncio
import json

import pytest
import run as conformance

SCENARIOS = sorted(conformance.SCENARIOS.glob("*.json"))


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_scenario(path):
    asyncio.run(conformance.run_scenario(path))


def test_the_runner_notices_what_goes_wrong(tmp_path):
    """A scenario whose expectation is false fails, and so does one whose fault never strikes."""
    for change in (
        {"steps": [{"do": "append", "expect": "fenced"}]},
        {"steps": [{"do": "append"}], "faults": [{"on": "append", "nth": 9, "do": "drop"}]},
        {"steps": [{"do": "status", "expect": {"role": "follower"}}]},
    ):
        path = tmp_path / "wrong.json"
        path.write_text(json.dumps(change))
        with pytest.raises(conformance.Mismatch):
            asyncio.run(conformance.run_scenario(path))
