"""The doctor: what each look means, and the command over a real PostgreSQL and Redis."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from quorate_api.coordinator.schemas import ServerView
from quorate_api.doctor import findings, rules
from quorate_api.doctor.examination import examine
from quorate_api.doctor.findings import Finding
from quorate_api.settings import Settings

NOW = datetime(2026, 11, 30, tzinfo=UTC)
A, B, C = (UUID(int=number) for number in (1, 2, 3))


def server(name: str, **more: bool) -> ServerView:
    values = {"name": name, "alive": True, "slow": False, "storage_fault": False} | more
    return ServerView.model_construct(None, **values)


def test_groups_that_one_side_does_not_know() -> None:
    assert [each.state for each in rules.of_groups([A, B], [B, A])] == ["ok"]
    (older_log,) = rules.of_groups([A, B], [A])
    assert older_log.state == "fail"
    assert str(B) in older_log.text
    assert "log is older" in older_log.todo
    (older_database,) = rules.of_groups([A], [A, C])
    assert str(C) in older_database.text
    assert "database is older" in older_database.todo
    assert len(rules.of_groups([A], [B])) == 2


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (rules.of_clock("x", NOW, NOW + timedelta(seconds=1)), "ok"),
        (rules.of_clock("x", NOW, NOW - timedelta(seconds=90)), "fail"),
        (rules.of_secret_file("x", 0o100600), "ok"),
        (rules.of_secret_file("x", 0o100640), "fail"),
        (rules.of_servers([]), "fail"),
        (rules.of_servers([server("s1"), server("s2")]), "ok"),
        (rules.of_servers([server("s1"), server("s2", alive=False)]), "warn"),
        (rules.of_servers([server("s1", slow=True)]), "warn"),
        (rules.of_backlog(None, NOW), "warn"),
        (rules.of_backlog(NOW - timedelta(seconds=70), NOW), "ok"),
        (rules.of_backlog(NOW - timedelta(hours=1), NOW), "fail"),
        (rules.of_backups(None, NOW), "fail"),
        (rules.of_backups(NOW - timedelta(hours=30), NOW), "ok"),
        (rules.of_backups(NOW - timedelta(days=3), NOW), "fail"),
    ],
)
def test_what_each_look_means(found: Finding, state: str) -> None:
    assert found.state == state
    assert (found.todo == "") == (state == "ok"), "what is not well has a remedy"


def test_the_text_names_remedies_and_counts() -> None:
    text = findings.as_text([Finding("redis", "ok", "answers"), Finding("postgresql", "fail", "is away", "Start it.")])
    assert text.splitlines() == [
        "ok    redis       answers",
        "fail  postgresql  is away",
        "                  → Start it.",
        "",
        "1 well, 0 to look at, 1 to mend",
    ]


async def test_it_looks_at_real_servers(settings: Settings, tmp_path: Path) -> None:
    found = {each.subject: each for each in await examine(settings, tmp_path)}
    assert found["postgresql"].state == found["redis"].state == "ok"
    assert found["row-level security"].state == "ok"
    assert found["clock of PostgreSQL"].state == "ok"
    assert found["coordinator"].state == "fail"
    assert found["backups"].state == "fail"
    assert not findings.is_well(list(found.values()))
    assert json.loads(findings.as_json(list(found.values())))
    assert settings.secret_file is not None
    mode = settings.secret_file.stat().st_mode
    os.chmod(settings.secret_file, 0o644)
    try:
        again = {each.subject: each for each in await examine(settings, None)}
    finally:
        os.chmod(settings.secret_file, mode)
    assert again["file of secret"].state == "fail"
