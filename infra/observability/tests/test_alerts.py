"""The alerts: their unit tests pass (and can fail), each has a page and each page an alert."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from quorate_local.observing import tool
from quorate_local.options import REPOSITORY
from quorate_observe import alerts
from quorate_observe.metrics import FOLDER

PAGES = REPOSITORY / "docs" / "operating" / "runbooks"
ALL = alerts.load()


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tool("promtool"), *arguments], capture_output=True, text=True, check=False, timeout=50, cwd=FOLDER
    )


def test_rules_are_well_formed() -> None:
    done = promtool("check", "rules", *map(str, alerts.rule_files()))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_of_a_fleet_is_well_formed() -> None:
    done = promtool("check", "config", "prometheus.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(alerts.rule_files())} rule files found" in done.stdout


@pytest.mark.parametrize("path", alerts.test_files(), ids=lambda path: path.stem)
def test_unit_tests_of_alerts(path: Path) -> None:
    done = promtool("test", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", alerts.rule_files(), ids=lambda path: path.name.split(".")[0])
def test_unit_tests_notice_an_alert_that_never_fires(tmp_path: Path, path: Path) -> None:
    """Each alert in turn is changed so that it cannot fire. Its unit test must fail."""
    tests = path.name.replace(".rules.yaml", ".yaml")
    (tmp_path / "tests").mkdir()
    shutil.copy(alerts.TESTS / tests, tmp_path / "tests" / tests)
    whole = yaml.safe_load(path.read_text())
    for rule in whole["groups"][0]["rules"]:
        kept, rule["expr"] = rule["expr"], f"({rule['expr']}) and absent(vector(0))"
        (tmp_path / path.name).write_text(json.dumps(whole))
        done = promtool("test", "rules", str(tmp_path / "tests" / tests))
        assert done.returncode != 0, f"{rule['alert']} never fired, and no test failed"
        rule["expr"] = kept


def test_every_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    tried = alerts.tried()
    lacking = [alert.name for alert in ALL if tried.get(alert.name) != {True, False}]
    assert not lacking
    assert set(tried) == {alert.name for alert in ALL}, "a test names an unknown alert"


def test_every_alert_says_how_urgent_it_is() -> None:
    assert len(ALL) >= 15
    assert all(alert.severity in alerts.SEVERITIES and alert.annotations.get("summary") for alert in ALL)


def test_alerts_and_pages_belong_together() -> None:
    for alert in ALL:
        assert alert.annotations["runbook_url"] == f"docs/operating/runbooks/{alert.name}.md"
    pages = {path.stem for path in PAGES.glob("*.md")} - {"README"}
    assert pages == {alert.name for alert in ALL}
    index = (PAGES / "README.md").read_text()
    for alert in ALL:
        row = next(line for line in index.splitlines() if line.startswith(f"| [{alert.name}]({alert.name}.md) |"))
        assert row.endswith(f"| {alert.severity} |")


@pytest.mark.parametrize("alert", ALL, ids=lambda alert: alert.name)
def test_a_page_has_what_one_needs_at_night(alert: alerts.Alert) -> None:
    text = (PAGES / f"{alert.name}.md").read_text()
    assert text.startswith(f"# {alert.name}\n")
    for part in ("**Effect on customers.**", "## Confirm\n", "## Do\n", "## When to call for help\n"):
        assert part in text, f"{alert.name}: no {part.strip()}"
    assert "```" in text.split("## Confirm")[1].split("## Do")[0], "no command to confirm it with"


def test_commands_of_pages_exist() -> None:
    """Paths of the API are in its contract or the coordinator's, `make` targets in the Makefile, flags in the docs."""
    contract = set(json.loads((REPOSITORY / "sdk/contract/openapi.json").read_text())["paths"])
    internals = REPOSITORY / "docs/internals"
    coordinator = set(re.findall(r"/v1/[a-z/_{}-]+", (internals / "coordinator.md").read_text()))
    targets = set(re.findall(r"^([a-z0-9-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    processes = (internals / "processes.md").read_text()
    seen = 0
    for path in PAGES.glob("*.md"):
        text = path.read_text()
        for found in re.findall(r"/v1/[a-z/_{}-]+", text):
            seen += 1
            assert found in contract | coordinator, f"{path.name}: {found}"
        for found in re.findall(r"(?:`|^|; )make ([a-z-]+)", text, re.MULTILINE):
            assert found in targets, f"{path.name}: make {found}"
        for found in re.findall(r"`(--[a-z-]+)`", text):
            assert found in processes, f"{path.name}: {found}"
        for found in re.findall(r"`?\b(QUORATE_[A-Z_]+)", text):
            assert found in processes + (PAGES / "README.md").read_text(), f"{path.name}: {found}"
    assert seen > 15
