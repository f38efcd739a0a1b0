"""The doctor's looks: configuration, PostgreSQL, Redis, the coordinator, and whether they agree. Changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import app
from quorate_api.backup.folder import BackupFolder
from quorate_api.coordinator.client import Coordinator, CoordinatorUnavailable
from quorate_api.database import engine as database
from quorate_api.doctor import rules
from quorate_api.doctor.findings import Finding
from quorate_api.doctor.repository import DoctorRepository
from quorate_api.health import service as health
from quorate_api.health.schemas import Dependency
from quorate_api.settings import Settings
from quorate_api.worker.ingest import Ingest

AWAY = (SQLAlchemyError, RedisError, CoordinatorUnavailable, OSError, TimeoutError)
SECRETS = ("secret_file", "token_signing_key_file", "coordinator_token_file", "operator_token_file")


async def examine(settings: Settings, backups: Path | None) -> list[Finding]:
    engine = database.create(settings.database_url, database.WORKER_ROLE)
    redis, coordinator = app.make_redis(settings), Coordinator.configured(settings)
    try:
        found = _files(settings) + await _dependencies(engine, redis, coordinator)
        looks: list[Callable[[], Awaitable[list[Finding]]]] = [
            lambda: _database(engine),
            lambda: _fleet(engine, coordinator),
            lambda: _usage(engine, redis),
        ]
        for look in looks:
            try:
                found += await look()
            except AWAY:
                continue  # the dependency is told of above
        return found + ([] if backups is None else [_backups(backups)])
    finally:
        await coordinator.aclose()
        if redis is not None:
            await redis.aclose()
        await engine.dispose()


def _files(settings: Settings) -> list[Finding]:
    paths = {name: getattr(settings, name) for name in SECRETS}
    found = [
        rules.of_secret_file(name.removesuffix("_file").replace("_", " "), path.stat().st_mode)
        for name, path in paths.items()
        if path is not None
    ]
    if not settings.secure:
        todo = "Give QUORATE_PUBLIC_URL the https:// address that customers use, unless this is a trial on one machine."
        found.append(Finding("public address", "warn", f"{settings.origin}: cookies go in the clear", todo))
    if not settings.sends_mail:
        todo = "Set QUORATE_MAIL: without it nobody is invited, and no password is reset."
        found.append(Finding("mail", "warn", "none is sent", todo))
    return found


def _backups(folder: Path) -> Finding:
    bases = BackupFolder(folder).bases()
    return rules.of_backups(bases[-1].taken_at if bases else None, datetime.now(UTC))


async def _dependencies(engine: AsyncEngine, redis: Redis | None, coordinator: Coordinator) -> list[Finding]:
    probes = asyncio.gather(
        health.postgresql(engine, database.WORKER_ROLE), health.redis_server(redis), health.fleet(coordinator)
    )
    return [_dependency(each) for each in await probes]


def _dependency(found: Dependency) -> Finding:
    if found.state == "ok":
        return Finding(found.name, "ok", "answers")
    return Finding(found.name, "fail", found.detail, "Start it, or correct its address and credentials.")


async def _database(engine: AsyncEngine) -> list[Finding]:
    async with engine.begin() as connection:
        theirs, bare = await DoctorRepository(connection).look()
    found = [rules.of_clock("PostgreSQL", theirs, datetime.now(UTC))]
    if bare:
        todo = "Run `quorate-api migrate`; nothing else turns it off."
        found.append(Finding("row-level security", "fail", f"off for {', '.join(bare)}", todo))
    else:
        found.append(Finding("row-level security", "ok", "on for each table of customers"))
    return found


async def _fleet(engine: AsyncEngine, coordinator: Coordinator) -> list[Finding]:
    servers = await coordinator.servers()
    placed = {view.group_id for view in await coordinator.groups() if view.status != "deleting"}
    async with engine.begin() as connection:
        known = await DoctorRepository(connection).groups()
    return [rules.of_servers(servers), *rules.of_groups(known, placed)]


async def _usage(engine: AsyncEngine, redis: Redis | None) -> list[Finding]:
    if redis is None:
        return []
    stored_until = await Ingest(redis, engine, "doctor").stored_until()
    return [rules.of_backlog(stored_until, datetime.now(UTC))]
