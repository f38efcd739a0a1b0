"""Folders of backups: what is kept, what a restore takes, and what it refuses."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from quorate_api import exit_codes, main
from quorate_api.backup import restoring, tools
from quorate_api.backup.folder import FORM, BackupFolder
from quorate_api.embedded import postgres
from quorate_api.settings import ConfigurationError

DAY = datetime(2026, 11, 1, tzinfo=UTC)


def base_of(folder: BackupFolder, day: int, segment: int) -> Path:
    """A base backup as `pg_basebackup` leaves it, as far as a restore reads it."""
    path = folder.root / "base" / (DAY + timedelta(days=day)).strftime(FORM)
    path.mkdir()
    label = f"START WAL LOCATION: 0/{segment:X}000028 (file {name_of(segment)})\nBACKUP METHOD: streamed\n"
    (path / "backup_label").write_text(label)
    (path / "PG_VERSION").write_text("18\n")
    files = [
        {"Path": name, "Checksum": hashlib.sha256((path / name).read_bytes()).hexdigest()}
        for name in ("backup_label", "PG_VERSION")
    ]
    (path / "backup_manifest").write_text(json.dumps({"Files": files}))
    return path


def name_of(segment: int) -> str:
    return f"00000001{0:08X}{segment:08X}"


@pytest.fixture
def folder(tmp_path: Path) -> BackupFolder:
    made = BackupFolder(tmp_path / "backups")
    made.create()
    for day, segment in enumerate((2, 5, 9)):
        base_of(made, day, segment)
    for segment in range(1, 12):
        (made.wal / name_of(segment)).write_text(f"{segment}")
    (made.wal / f"{name_of(12)}.partial").write_text("12")
    return made


def test_old_bases_go_with_the_log_that_they_alone_need(folder: BackupFolder) -> None:
    (folder.root / "base" / "2026-11-09T00-00-00Z.part").mkdir()
    gone = folder.forget(2)
    assert [path.name for path in gone] == ["2026-11-01T00-00-00Z"]
    assert [path.name for path in folder.segments()] == [
        *(name_of(segment) for segment in range(5, 12)), f"{name_of(12)}.partial",
    ]  # fmt: skip
    assert len(folder.bases()) == 2
    assert folder.forget(2) == []
    assert not list((folder.root / "base").glob("*.part")), "broken off ones go, too"
    assert folder.root.stat().st_mode & 0o077 == 0


def test_a_restore_takes_the_newest_base_and_the_log_behind_it(folder: BackupFolder, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster"
    restored = restoring.restore(folder.root, cluster, None)
    assert restored.base.path.name == "2026-11-03T00-00-00Z"
    assert sorted(path.name for path in (cluster / restoring.REPLAYED).iterdir()) == [
        name_of(segment) for segment in (9, 10, 11, 12)
    ]
    assert (cluster / "recovery.signal").exists()
    assert "restore_command = 'cp quorate_wal/%f %p'" in (cluster / "postgresql.auto.conf").read_text()
    with pytest.raises(tools.BackupFailed, match="is not empty"):
        restoring.restore(folder.root, cluster, None)


def test_a_restore_until_a_time_takes_a_base_from_before(folder: BackupFolder, tmp_path: Path) -> None:
    until = DAY + timedelta(days=1, hours=3)
    assert restoring.restore(folder.root, tmp_path / "a", until).base.path.name == "2026-11-02T00-00-00Z"
    assert f"recovery_target_time = '{until.isoformat()}'" in (tmp_path / "a" / "postgresql.auto.conf").read_text()
    with pytest.raises(tools.BackupFailed, match="no base backup that is old enough"):
        restoring.restore(folder.root, tmp_path / "b", DAY - timedelta(days=1))
    assert not (tmp_path / "b").exists()


def test_a_damaged_base_is_refused(folder: BackupFolder, tmp_path: Path) -> None:
    newest = folder.bases()[-1].path
    (newest / "PG_VERSION").write_text("19\n")
    with pytest.raises(tools.BackupFailed, match="PG_VERSION is damaged"):
        restoring.restore(folder.root, tmp_path / "a", None)
    (newest / "PG_VERSION").unlink()
    with pytest.raises(tools.BackupFailed, match="is not whole"):
        restoring.restore(folder.root, tmp_path / "a", None)


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["restore", "--dir", str(tmp_path), "--to", str(tmp_path / "c")]) == exit_codes.FAILED
    assert "holds no backups" in capsys.readouterr().err
    arguments = ["restore", "--dir", str(tmp_path), "--to", str(tmp_path / "c"), "--until", "yesterday"]
    assert main.main(arguments) == exit_codes.CONFIGURATION


def test_programs_of_an_older_release_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pg_receivewal"
    program.write_text("#!/bin/sh\necho 'pg_receivewal (PostgreSQL) 15.18'\n")
    program.chmod(0o755)
    monkeypatch.setenv("QUORATE_POSTGRES_BIN_DIR", str(tmp_path))
    assert tools.find("pg_receivewal", 15) == program
    with pytest.raises(ConfigurationError, match="PostgreSQL 18 or later is not found"):
        tools.find("pg_receivewal", 18)


def test_no_password_is_among_the_arguments_of_programs() -> None:
    url = "postgresql://owner:p%40ss@db.example:6432/quorate?sslmode=verify-full&sslrootcert=/ca.pem"
    env = tools.environment(url, "quorate_backup")
    assert {name: env[name] for name in ("PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGSSLMODE", "PGAPPNAME")} == {
        "PGHOST": "db.example", "PGPORT": "6432", "PGUSER": "owner", "PGPASSWORD": "p@ss", "PGSSLMODE": "verify-full",
        "PGAPPNAME": "quorate_backup",
    }  # fmt: skip


def test_one_backup_that_is_whole_by_itself(tmp_path: Path) -> None:
    """With a real PostgreSQL, through the restore, to the row that was there."""
    url = postgres.start(tmp_path / "one", durable=False)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (what text)")
            connection.execute("INSERT INTO kept VALUES ('a row')")
        from quorate_api.backup import keeping

        assert keeping.keep(url, tmp_path / "backups", once=True) == 0
    finally:
        postgres.stop(tmp_path / "one")
    restoring.restore(tmp_path / "backups", tmp_path / "two" / "cluster", None)
    (tmp_path / "two" / "password").write_text((tmp_path / "one" / "password").read_text())
    url = postgres.start(tmp_path / "two", durable=False)
    try:
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT what FROM kept").fetchall() == [("a row",)]
    finally:
        postgres.stop(tmp_path / "two")
