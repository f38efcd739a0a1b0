"""The command `quorate-api`."""

import argparse
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from quorate_api import exit_codes


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.log_format:
        os.environ["QUORATE_LOG_FORMAT"] = asked.log_format
    from quorate_api.settings import ConfigurationError

    try:
        return int(asked.run(asked))
    except ConfigurationError as error:
        print(f"quorate-api: {error}", file=sys.stderr)
        return exit_codes.CONFIGURATION
    except KeyboardInterrupt:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="quorate-api", description="Quorate's control plane. Environment: docs/internals/processes.md."
    )
    parser.add_argument("--log-format", choices=["json", "text"], help="json (default), or text for people")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, text in (
        ("api", _api, "serve the API, and the portal if QUORATE_PORTAL_DIR is set"),
        ("worker", _worker, "ingest usage, follow the coordinator, evaluate budgets, close months, remind of payments"),
        ("migrate", _migrate, "bring the database's schema up to date, then exit"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
    keys = commands.add_parser("keys-init", help="create the signing key, its JWKS, the secret and tokens where absent")
    keys.add_argument("--dir", type=Path, required=True, help="folder for the files (created with mode 0700)")
    keys.add_argument(
        "--seed-file", type=Path, help="derive all keys from the hexadecimal seed in it, those of coordinators as well"
    )
    keys.set_defaults(run=_keys_init)
    verification = commands.add_parser("audit-verify", help="check the chain of hashes in an export of the audit log")
    verification.add_argument("file", type=Path, help="as `GET /v1/audit/export` gives it")
    verification.set_defaults(run=_audit_verify)
    comparison = commands.add_parser(
        "audit-compare", help="compare the audit logs with their copies in the group of QUORATE_AUDIT_GROUP_ID"
    )
    comparison.set_defaults(run=_audit_compare)
    _add_operators_day(commands)
    rotation = commands.add_parser(
        "keys-rotate",
        help="sign tokens with another key, in three steps without a gap (docs/operating/signing-keys.md)",
    )
    rotation.add_argument("--dir", type=Path, required=True, help="folder of the key files")
    rotation.add_argument("--step", choices=["prepare", "switch", "finish"], required=True)
    rotation.add_argument("--now", action="store_true", help="with finish: end the former key's tokens at once")
    rotation.set_defaults(run=_keys_rotate)
    exchange = commands.add_parser(
        "secret-rotate", help="use another secret, in three steps without a gap (docs/operating/secret.md)"
    )
    exchange.add_argument("--dir", type=Path, required=True, help="folder of the key files")
    exchange.add_argument("--step", choices=["prepare", "switch", "finish"], required=True)
    exchange.add_argument("--now", action="store_true", help="with finish: end what the former one has signed at once")
    exchange.set_defaults(run=_secret_rotate)
    resealing = commands.add_parser("secret-reseal", help="seal anew what a former secret has sealed")
    resealing.set_defaults(run=_secret_reseal)
    contract = commands.add_parser("openapi", help="write sdk/contract/openapi.json and the other generated files")
    contract.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file is out of date")
    contract.set_defaults(run=_openapi)
    snapshot = commands.add_parser("schema-snapshot", help="write migrations/schema.sql, with an embedded PostgreSQL")
    snapshot.set_defaults(run=_schema_snapshot)
    close = commands.add_parser("close-months", help="issue the invoices of past months, then exit")
    close.add_argument("--as-of", help="RFC 3339; default: now. For trials")
    close.set_defaults(run=_close_months)
    return parser


def _add_operators_day(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    backup = commands.add_parser(
        "backup",
        help="keep backups of PostgreSQL: one a day, and each commit (docs/operating/backups.md)",
    )
    backup.add_argument("--dir", type=Path, required=True, help="folder for them (created with mode 0700)")
    backup.add_argument("--once", action="store_true", help="make one backup that is whole by itself, then exit")
    backup.set_defaults(run=_backup)
    restoration = commands.add_parser("restore", help="make a new PostgreSQL cluster from backups")
    restoration.add_argument("--dir", type=Path, required=True, help="folder of the backups")
    restoration.add_argument("--to", type=Path, required=True, help="folder of the new cluster; it must be empty")
    restoration.add_argument("--until", help="RFC 3339; without it everything that was committed is restored")
    restoration.set_defaults(run=_restore)
    session = commands.add_parser(
        "operator-session", help="print a token for one operator's work, which ends by itself"
    )
    session.add_argument("--name", required=True, help="who works with it, for the operators' audit log")
    session.add_argument("--hours", type=float, default=8.0, help="until it ends: 8, at most 12")
    session.set_defaults(run=_operator_session)
    doctor = commands.add_parser("doctor", help="look at everything that this service needs, and say what to mend")
    doctor.add_argument("--backups", type=Path, help="folder of `quorate-api backup`, to be looked at, too")
    doctor.add_argument("--json", action="store_true", help="JSON instead of text")
    doctor.set_defaults(run=_doctor)


def _api(_asked: argparse.Namespace) -> int:
    from quorate_api import server

    return server.run()


def _worker(_asked: argparse.Namespace) -> int:
    from quorate_api.worker import process

    return process.run()


def _close_months(asked: argparse.Namespace) -> int:
    from quorate_api.worker import process

    at = _time(asked.as_of, "--as-of") if asked.as_of else datetime.now(UTC)
    print(f"{process.close_months_once(at)} documents issued")
    return 0


def _time(text: str, option: str) -> datetime:
    from quorate_api.settings import ConfigurationError

    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise ConfigurationError(f"{option} must be RFC 3339, as in 2026-12-01T00:00:00Z.") from None


def _migrate(_asked: argparse.Namespace) -> int:
    from sqlalchemy.exc import OperationalError

    from quorate_api import lifecycle
    from quorate_api.database import engine, logins, migrate
    from quorate_api.observability import logs
    from quorate_api.settings import ConfigurationError, load

    settings = load()
    logs.configure(settings.log_format)
    url = settings.owner_database_url or settings.database_url
    try:
        migrations = engine.migrations_dir(settings.migrations_dir)
    except FileNotFoundError as error:
        raise ConfigurationError(str(error)) from None
    if not lifecycle.wait_for_server(url, settings.start_wait_s):
        return exit_codes.DEPENDENCY
    try:
        migrate.upgrade(url, migrations)
        logins.ensure(url, settings.database_url)
    except OperationalError as error:
        print(f"quorate-api: the migration failed: {error.orig}", file=sys.stderr)
        return exit_codes.FAILED
    except logins.LoginRefused as error:
        print(f"quorate-api: the schema is up to date, and its user is not: {error}", file=sys.stderr)
        return exit_codes.FAILED
    print("the schema is up to date")
    return 0


def _keys_init(asked: argparse.Namespace) -> int:
    from quorate_api.security import key_files

    try:
        seed_hex = asked.seed_file.read_text() if asked.seed_file else None
        for path in key_files.make_keys(asked.dir, seed_hex):
            print(f"made {path}")
    except (OSError, key_files.SeedRefused) as error:
        print(f"quorate-api: keys-init: {error}", file=sys.stderr)
        return exit_codes.CONFIGURATION
    return 0


def _backup(asked: argparse.Namespace) -> int:
    from quorate_api.backup import keeping
    from quorate_api.settings import load

    settings = load()
    return keeping.keep(settings.owner_database_url or settings.database_url, asked.dir, once=asked.once)


def _restore(asked: argparse.Namespace) -> int:
    from quorate_api.backup import restoring, tools

    until = _time(asked.until, "--until") if asked.until else None
    try:
        restored = restoring.restore(asked.dir, asked.to, until)
    except (tools.BackupFailed, OSError) as error:
        print(f"quorate-api: restore: {error}", file=sys.stderr)
        return exit_codes.FAILED
    print(f"{asked.to} holds the base backup {restored.base.path.name} and {restored.segments} segments of the log.")
    print("Start PostgreSQL on it: it replays them, and is the database then.")
    return 0


def _operator_session(asked: argparse.Namespace) -> int:
    from datetime import timedelta

    from quorate_api import limits
    from quorate_api.database.ids import new_id
    from quorate_api.security import operator_sessions
    from quorate_api.security.keys import Keys
    from quorate_api.settings import ConfigurationError, load

    if not operator_sessions.NAME.fullmatch(asked.name):
        raise ConfigurationError("--name must be letters, digits, and . _ - @, as in ada@example.com.")
    if not 0 < asked.hours * 3_600 <= limits.OPERATOR_SESSION_S_MAX:
        raise ConfigurationError(f"--hours must be at most {limits.OPERATOR_SESSION_S_MAX // 3_600}.")
    until = datetime.now(UTC) + timedelta(hours=asked.hours)
    session = operator_sessions.OperatorSession(new_id(), asked.name, until)
    print(operator_sessions.issue(Keys.of(load().secrets()), session))
    return 0


def _doctor(asked: argparse.Namespace) -> int:
    import asyncio

    from quorate_api.doctor import examination, findings
    from quorate_api.observability import logs
    from quorate_api.settings import load

    settings = load()
    logs.configure(settings.log_format)
    found = asyncio.run(examination.examine(settings, asked.backups))
    print(findings.as_json(found) if asked.json else findings.as_text(found))
    return 0 if findings.is_well(found) else exit_codes.FAILED


def _said(command: str, act: Callable[[], str], *refusals: type[Exception]) -> int:
    """Prints the answer, or why there is none."""
    try:
        print(act())
    except (OSError, *refusals) as error:  # type: ignore[misc]
        print(f"quorate-api: {command}: {error}", file=sys.stderr)
        return exit_codes.FAILED
    return 0


def _keys_rotate(asked: argparse.Namespace) -> int:
    from quorate_api.security import key_rotation

    return _said(
        "keys-rotate",
        lambda: key_rotation.run(asked.dir, asked.step, at_once=asked.now),
        key_rotation.RotationRefused,
    )


def _secret_rotate(asked: argparse.Namespace) -> int:
    from quorate_api.security import secret_rotation

    return _said(
        "secret-rotate",
        lambda: secret_rotation.run(asked.dir, asked.step, at_once=asked.now),
        secret_rotation.SecretRotationRefused,
    )


def _secret_reseal(_asked: argparse.Namespace) -> int:
    import asyncio

    from quorate_api.database import engine as database
    from quorate_api.resealing import service
    from quorate_api.security.keys import Keys
    from quorate_api.settings import load

    settings = load()

    async def reseal() -> service.Resealed:
        engine = database.create(settings.owner_database_url or settings.database_url, database.NO_ROLE)
        try:
            return await service.reseal(engine, Keys.of(settings.secrets()))
        finally:
            await engine.dispose()

    found = asyncio.run(reseal())
    print(
        f"{found.rows} values sealed anew. API keys that nobody has used since the switch: {found.keys_left}; they end "
        "with the former secret."
    )
    return 0


def _audit_verify(asked: argparse.Namespace) -> int:
    from quorate_api.audit import chain

    def verify() -> str:
        with asked.file.open(encoding="utf-8") as lines:
            count, digest = chain.check(chain.read_export(lines))
        return f"{count} events, none changed, missing or moved. Hash of the last: {digest.hex()}"

    return _said("audit-verify", verify, UnicodeDecodeError, chain.ChainBroken)


def _audit_compare(_asked: argparse.Namespace) -> int:
    import asyncio

    from quorate_api.audit import comparison
    from quorate_api.audit.copies import Comparison
    from quorate_api.audit.group import AWAY, AuditGroup
    from quorate_api.database import engine as database
    from quorate_api.settings import ConfigurationError, load

    settings = load()
    group = AuditGroup.configured(settings)
    if group is None:
        raise ConfigurationError("QUORATE_AUDIT_GROUP_ID is not set: audit logs are copied into no group.")

    async def compare() -> Comparison:
        engine = database.create(settings.database_url, database.WORKER_ROLE)
        try:
            async with await group.connect(read_only=True) as client:
                return await comparison.compare(engine, client)
        finally:
            await engine.dispose()

    try:
        found = asyncio.run(compare())
    except AWAY as error:
        print(f"quorate-api: audit-compare: {error}", file=sys.stderr)
        return exit_codes.DEPENDENCY
    for difference in found.differences:
        print(difference, file=sys.stderr)
    verdict = "the same as in the database" if not found.differences else "NOT the same as in the database"
    print(f"{found.copies} copies of events of {found.logs} logs, {verdict}.")
    return exit_codes.FAILED if found.differences else 0


def _openapi(asked: argparse.Namespace) -> int:
    from quorate_api import app, openapi
    from quorate_api.database.engine import migrations_dir

    stale = 0
    for path, text in openapi.generated_files(app.bare(), migrations_dir(None).parent).items():
        if path.exists() and path.read_text() == text:
            continue
        stale += 1
        if asked.check:
            print(f"{path} is out of date: run `quorate-api openapi`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path}")
    return 1 if asked.check and stale else 0


def _schema_snapshot(_asked: argparse.Namespace) -> int:
    import tempfile

    from quorate_api.database.engine import migrations_dir
    from quorate_api.database.migrate import snapshot, upgrade
    from quorate_api.embedded import postgres

    migrations = migrations_dir(None)
    with tempfile.TemporaryDirectory() as folder:
        try:
            url = postgres.start(folder, durable=False)
            upgrade(url, migrations)
            (migrations / "schema.sql").write_text(snapshot(url, postgres.binaries() / "pg_dump"))
        finally:
            postgres.stop(folder)
    print(f"wrote {migrations / 'schema.sql'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
