"""The `worker` process: independent tasks that survive missing dependencies."""

import asyncio
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial

import structlog
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import app, exit_codes, lifecycle, limits
from quorate_api.audit.group import AuditGroup
from quorate_api.billing.issuer import Issuer
from quorate_api.coordinator.client import Coordinator
from quorate_api.database import engine as database
from quorate_api.health import service as health
from quorate_api.health.dependencies import Dependencies
from quorate_api.mail import senders
from quorate_api.networks import parse_networks
from quorate_api.observability import counters, logs, telemetry
from quorate_api.observability.readings import Readings
from quorate_api.security.keys import Keys
from quorate_api.settings import ConfigurationError, Settings, load
from quorate_api.tasks import end_task
from quorate_api.webhooks.sender import Sender
from quorate_api.webhooks.transport import PublicOnly
from quorate_api.worker.adjustments import adjust_closed_months
from quorate_api.worker.admissions import forget_admissions
from quorate_api.worker.audit_copies import Copier
from quorate_api.worker.budgets import evaluate_budgets
from quorate_api.worker.caps import CapWatch
from quorate_api.worker.closures import close_organizations
from quorate_api.worker.dunning import remind
from quorate_api.worker.events import Follower
from quorate_api.worker.ingest import Ingest
from quorate_api.worker.mails import Postman
from quorate_api.worker.month_close import close_months
from quorate_api.worker.outside import judge_late_looks
from quorate_api.worker.reconcile import Reconciler
from quorate_api.worker.retention import settle_days
from quorate_api.worker.revocations import Revoker
from quorate_api.worker.rollup import pack_hours, roll_up
from quorate_api.worker.status import StatusWatch, client
from quorate_api.worker.steady import keep_running
from quorate_api.worker.watch import Watch
from quorate_api.worker.webhooks import Messenger, forget_events

log = structlog.get_logger(__name__)

# A name for logs, one pass or endless work, and the pause between two passes in seconds.
Work = tuple[str, Callable[[], Awaitable[object]], float | None]


def run() -> int:
    settings = load()
    if settings.redis_url is None:
        raise ConfigurationError("REDIS_URL is not set; the worker reads usage from it.")
    settings.coordinator_token()
    settings.check_archive()
    AuditGroup.configured(settings)
    logs.configure(settings.log_format)
    telemetry.configure(settings, "quorate-worker")
    try:
        return asyncio.run(_work(settings))
    finally:
        telemetry.shutdown(settings)


def close_months_once(at: datetime) -> int:
    """For the command `close-months`: closes at once, without waiting for late telemetry."""
    settings = load()
    logs.configure(settings.log_format)

    async def close() -> int:
        engine = database.create(settings.database_url, database.WORKER_ROLE)
        try:
            return await close_months(engine, Issuer.configured(settings), at, delay_s=0)
        finally:
            await engine.dispose()

    return asyncio.run(close())


async def _work(settings: Settings) -> int:
    redis = app.make_redis(settings)
    assert redis is not None, "checked by run"
    engine = database.create(settings.database_url, database.WORKER_ROLE)
    coordinator = Coordinator.configured(settings)
    api = client(settings.origin)
    messenger: Messenger | None = None
    copier: Copier | None = None
    try:
        there = await lifecycle.wait_for(
            [
                lambda: health.postgresql(engine, database.WORKER_ROLE),
                lambda: health.redis_server(redis),
                lambda: health.fleet(coordinator),
            ],
            settings.start_wait_s,
        )
        if not there:
            return exit_codes.DEPENDENCY
        ingest = Ingest(redis, engine, settings.worker_name or socket.gethostname())
        messenger = Messenger(engine, Keys.of(settings.secrets()), Sender.over(_public_only(settings)))
        status = StatusWatch(engine, coordinator, ingest, api)
        if (group := AuditGroup.configured(settings)) is not None:
            copier = Copier(engine, group)
        works: list[Work] = [
            ("ingest", ingest.run, None),
            ("status", status.run, limits.STATUS_SAMPLE_S),
            ("webhooks", messenger.run, limits.WEBHOOK_INTERVAL_S),
            *_of_fleet(engine, coordinator),
            *_of_database(settings, engine),
            *_of_mail(settings, engine),
            *([] if copier is None else [("audit copies", copier.run, limits.AUDIT_COPY_INTERVAL_S)]),
        ]
        if settings.otlp_endpoint:
            works += _watching(engine, redis, coordinator, ingest)
        tasks = [asyncio.create_task(keep_running(name, work, every_s=every_s)) for name, work, every_s in works]
        sys.stdout.write("worker ready\n")
        sys.stdout.flush()
        return await _until_stopped(tasks)
    finally:
        if messenger is not None:
            await messenger.aclose()
        if copier is not None:
            await copier.aclose()
        await api.aclose()
        await coordinator.aclose()
        await redis.aclose()
        await engine.dispose()


def _of_fleet(engine: AsyncEngine, coordinator: Coordinator) -> list[Work]:
    return [
        ("events", Follower(engine, coordinator).run, None),
        ("reconcile", Reconciler(engine, coordinator).run, limits.RECONCILE_INTERVAL_S),
        ("revocations", Revoker(engine, coordinator).run, limits.REVOCATION_INTERVAL_S),
        ("caps", CapWatch(engine, coordinator).run, limits.CAP_INTERVAL_S),
    ]


def _of_database(settings: Settings, engine: AsyncEngine) -> list[Work]:
    issuer = Issuer.configured(settings)

    async def roll() -> None:
        await roll_up(engine)
        await judge_late_looks(engine)

    async def settle() -> None:
        await settle_days(engine, settings.usage_archive_dir)
        await forget_events(engine)
        await forget_admissions(engine)

    async def close() -> None:
        await close_months(engine, issuer, datetime.now(UTC))

    return [
        ("roll-up", roll, limits.ROLL_INTERVAL_S),
        ("packing", partial(pack_hours, engine), limits.PACK_INTERVAL_S),
        ("retention", settle, limits.RETENTION_INTERVAL_S),
        ("month close", close, limits.MONTH_CLOSE_INTERVAL_S),
        ("adjustments", partial(adjust_closed_months, engine, issuer), limits.ADJUST_INTERVAL_S),
        ("budgets", partial(evaluate_budgets, engine), limits.BUDGET_INTERVAL_S),
        ("closures", partial(close_organizations, engine), limits.CLOSURE_INTERVAL_S),
        ("dunning", partial(remind, engine), limits.DUNNING_INTERVAL_S),
    ]


def _public_only(settings: Settings) -> PublicOnly:
    return PublicOnly(parse_networks(settings.webhook_networks))


def _of_mail(settings: Settings, engine: AsyncEngine) -> list[Work]:
    """The work of sending mail, if this service sends any."""
    sender = senders.configured(settings)
    if sender is None:
        log.warning("no mail is sent: addresses are not verified, nobody is invited, no password is reset")
        return []
    return [("mail", Postman(engine, Keys.of(settings.secrets()), sender).run, limits.MAIL_INTERVAL_S)]


def _watching(engine: AsyncEngine, redis: Redis, coordinator: Coordinator, ingest: Ingest) -> list[Work]:
    """Work that reads the exported metrics."""
    counters.begin_worker()
    readings = Readings()
    watch = Watch(readings, engine, coordinator, ingest)
    probes = {
        "postgresql": lambda: health.postgresql(engine, database.WORKER_ROLE),
        "redis": lambda: health.redis_server(redis),
        "coordinator": lambda: health.fleet(coordinator),
    }
    dependencies = Dependencies(readings, engine, probes)
    return [
        ("watch", watch.run, limits.WATCH_INTERVAL_S),
        ("dependencies", dependencies.run, limits.WATCH_INTERVAL_S),
    ]


async def _until_stopped(tasks: list[asyncio.Task[None]]) -> int:
    """0 on SIGTERM or SIGINT. A task ends only by an error that waiting does not mend, and the process with it."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
    failed = [task for task in tasks if task.done() and not task.cancelled()]
    stopping.cancel()
    await asyncio.gather(*(end_task(task) for task in tasks))
    for task in failed:
        log.error("a task of the worker failed", exc_info=task.exception())
    return exit_codes.FAILED if failed else 0
