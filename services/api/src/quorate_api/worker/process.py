"""The `worker` process: independent tasks that survive missing dependencies."""

import asyncio
import signal
import socket
import sys
from datetime import UTC, datetime

import structlog
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import app, exit_codes, lifecycle, limits
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
from quorate_api.worker.budgets import evaluate_budgets
from quorate_api.worker.caps import CapWatch
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


def run() -> int:
    settings = load()
    if settings.redis_url is None:
        raise ConfigurationError("REDIS_URL is not set; the worker reads usage from it.")
    settings.coordinator_token()
    settings.check_archive()
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
        follower, reconciler = Follower(engine, coordinator), Reconciler(engine, coordinator)
        status = StatusWatch(engine, coordinator, ingest, api)

        issuer = Issuer.configured(settings)

        revoker = Revoker(engine, coordinator)

        async def revoke() -> None:
            await revoker.run()

        async def close() -> None:
            await close_months(engine, issuer, datetime.now(UTC))

        async def adjust() -> None:
            await adjust_closed_months(engine, issuer)

        async def roll() -> None:
            await roll_up(engine)
            await judge_late_looks(engine)

        async def pack() -> None:
            await pack_hours(engine)

        async def settle() -> None:
            await settle_days(engine, settings.usage_archive_dir)
            await forget_events(engine)

        messenger = _messenger(settings, engine)

        async def send() -> None:
            await messenger.run()

        async def evaluate() -> None:
            await evaluate_budgets(engine)

        cap_watch = CapWatch(engine, coordinator)

        async def cap() -> None:
            await cap_watch.run()

        async def dun() -> None:
            await remind(engine)

        tasks = [
            asyncio.create_task(keep_running("ingest", ingest.run)),
            asyncio.create_task(keep_running("events", follower.run)),
            asyncio.create_task(keep_running("reconcile", reconciler.run, every_s=limits.RECONCILE_INTERVAL_S)),
            asyncio.create_task(keep_running("revocations", revoke, every_s=limits.REVOCATION_INTERVAL_S)),
            asyncio.create_task(keep_running("roll-up", roll, every_s=limits.ROLL_INTERVAL_S)),
            asyncio.create_task(keep_running("packing", pack, every_s=limits.PACK_INTERVAL_S)),
            asyncio.create_task(keep_running("retention", settle, every_s=limits.RETENTION_INTERVAL_S)),
            asyncio.create_task(keep_running("month close", close, every_s=limits.MONTH_CLOSE_INTERVAL_S)),
            asyncio.create_task(keep_running("adjustments", adjust, every_s=limits.ADJUST_INTERVAL_S)),
            asyncio.create_task(keep_running("budgets", evaluate, every_s=limits.BUDGET_INTERVAL_S)),
            asyncio.create_task(keep_running("caps", cap, every_s=limits.CAP_INTERVAL_S)),
            asyncio.create_task(keep_running("dunning", dun, every_s=limits.DUNNING_INTERVAL_S)),
            asyncio.create_task(keep_running("status", status.run, every_s=limits.STATUS_SAMPLE_S)),
        ]
        tasks.append(asyncio.create_task(keep_running("webhooks", send, every_s=limits.WEBHOOK_INTERVAL_S)))
        tasks += _postmen(settings, engine)
        if settings.otlp_endpoint:
            tasks += _watching(engine, redis, coordinator, ingest)
        sys.stdout.write("worker ready\n")
        sys.stdout.flush()
        return await _until_stopped(tasks)
    finally:
        await api.aclose()
        await coordinator.aclose()
        await redis.aclose()
        await engine.dispose()


def _messenger(settings: Settings, engine: AsyncEngine) -> Messenger:
    transport = PublicOnly(parse_networks(settings.webhook_networks))
    return Messenger(engine, Keys(settings.secret()), Sender.over(transport))


def _postmen(settings: Settings, engine: AsyncEngine) -> list[asyncio.Task[None]]:
    """The task that sends mail, if this service sends any."""
    sender = senders.configured(settings)
    if sender is None:
        log.warning("no mail is sent: addresses are not verified, nobody is invited, no password is reset")
        return []
    postman = Postman(engine, Keys(settings.secret()), sender)

    async def send() -> None:
        await postman.run()

    return [asyncio.create_task(keep_running("mail", send, every_s=limits.MAIL_INTERVAL_S))]


def _watching(engine: AsyncEngine, redis: Redis, coordinator: Coordinator, ingest: Ingest) -> list[asyncio.Task[None]]:
    """Tasks that read the exported metrics."""
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
        asyncio.create_task(keep_running("watch", watch.run, every_s=limits.WATCH_INTERVAL_S)),
        asyncio.create_task(keep_running("dependencies", dependencies.run, every_s=limits.WATCH_INTERVAL_S)),
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
