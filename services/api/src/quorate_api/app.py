"""The API as an ASGI application."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from fastapi import FastAPI, Request, Response
from redis.asyncio import Redis

from quorate_api import limits, openapi
from quorate_api.accounts import endpoints as accounts
from quorate_api.adjustments import endpoints as adjustments
from quorate_api.admissions import endpoints as admission_log
from quorate_api.admissions import service as admissions
from quorate_api.audit import endpoints as audit_log
from quorate_api.audit import service as audit
from quorate_api.billing import endpoints as billing
from quorate_api.budgets import endpoints as budgets
from quorate_api.caps import service as caps
from quorate_api.checkout import providers
from quorate_api.checkpoints import endpoints as checkpoints
from quorate_api.closure import endpoints as closure
from quorate_api.commitments import endpoints as commitments
from quorate_api.coordinator.client import Coordinator
from quorate_api.database import engine
from quorate_api.database.work import Work
from quorate_api.emails import endpoints as emails
from quorate_api.entries import endpoints as entries
from quorate_api.errors import Code, handlers
from quorate_api.events import endpoints as events
from quorate_api.factors import endpoints as factors
from quorate_api.glances import endpoints as glances
from quorate_api.groups import endpoints as groups
from quorate_api.guarantees import endpoints as guarantees
from quorate_api.health import endpoints as health
from quorate_api.health import service as health_service
from quorate_api.health.dependencies import Dependencies
from quorate_api.held import Held
from quorate_api.http import portal
from quorate_api.http.envelope import Envelope
from quorate_api.http.known_keys import KnownKeys
from quorate_api.http.rates import Rates
from quorate_api.http.services import Services
from quorate_api.identities import endpoints as identities
from quorate_api.invitations import endpoints as invitations
from quorate_api.keys import endpoints as keys
from quorate_api.live import endpoints as live
from quorate_api.live import placements
from quorate_api.members import endpoints as members
from quorate_api.observability import counters, telemetry
from quorate_api.observability.readings import Readings
from quorate_api.openid import providers as identity_providers
from quorate_api.operator import endpoints as operator
from quorate_api.operators import endpoints as operators
from quorate_api.outside import endpoints as outside
from quorate_api.passkeys import endpoints as passkeys
from quorate_api.passwords import endpoints as passwords
from quorate_api.payments import endpoints as payments
from quorate_api.press import Press
from quorate_api.projects import endpoints as projects
from quorate_api.quotas import endpoints as quotas
from quorate_api.quotes import endpoints as quotes
from quorate_api.readers import Readers
from quorate_api.security.keys import Keys
from quorate_api.security.passwords import Passwords
from quorate_api.security.staff_tokens import Staff, StaffTokens
from quorate_api.security.tokens import TokenSigner
from quorate_api.sessions import endpoints as sessions
from quorate_api.settings import ConfigurationError, Settings
from quorate_api.sla import endpoints as sla
from quorate_api.spend import endpoints as spend
from quorate_api.status import endpoints as status
from quorate_api.status import snapshot
from quorate_api.tasks import end_task, repeat
from quorate_api.telemetry.hub import Hub
from quorate_api.telemetry.viewers import Viewers
from quorate_api.tenants import endpoints as tenants
from quorate_api.usage import endpoints as usage
from quorate_api.webhooks import endpoints as webhooks

ROUTERS = (
    accounts.public, accounts.router, emails.router, passwords.public, passwords.router, sessions.router,
    factors.router, passkeys.public, passkeys.router, identities.public, identities.router, members.router,
    invitations.public, invitations.router, closure.router, closure.operator_router, audit_log.router,
    events.router, webhooks.router, projects.router, guarantees.router, keys.router, quotes.router, groups.router,
    checkpoints.router, entries.router, usage.router, glances.router, sla.router, live.router, billing.router,
    payments.router, payments.event_router, spend.router, budgets.router, commitments.router, quotas.router,
    operator.router, operators.router, tenants.router, admission_log.router, payments.operator_router,
    adjustments.router, status.public, status.operator, outside.router, health.router,
)  # fmt: skip

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def build(services: Services) -> FastAPI:
    """The application on the caller's services. It closes them when it shuts down."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watching = _watch(services)
        # Modules live as long as the process: the garbage collector need not look at them again and again. A long
        # answer makes tens of thousands of objects, and none of them in a cycle.
        gc.collect()
        gc.freeze()
        gc.set_threshold(limits.GARBAGE_OBJECTS)
        yield
        if watching is not None:
            await end_task(watching)
        await close(services)

    app = bare(lifespan, services.settings)
    app.state.services = services
    telemetry.instrument(app, services.settings, services.engine)
    return app


def _watch(services: Services) -> asyncio.Task[None] | None:
    """Start the task that measures the dependencies, if metrics are exported."""
    if not services.settings.otlp_endpoint:
        return None
    counters.begin_api([code.value for code in Code])
    probes = {
        "postgresql": lambda: health_service.postgresql(services.engine, engine.API_ROLE),
        "redis": lambda: health_service.redis_server(services.redis),
        "coordinator": lambda: health_service.fleet(services.coordinator),
    }
    dependencies = Dependencies(Readings(), services.engine, probes)
    return asyncio.create_task(repeat(dependencies.run, limits.WATCH_INTERVAL_S))


def bare(lifespan: Lifespan | None = None, settings: Settings | None = None) -> FastAPI:
    """The routes alone, enough for the OpenAPI document."""
    app = FastAPI(
        title="Quorate",
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=openapi.operation_id,
        separate_input_output_schemas=False,
    )
    for router in ROUTERS:
        app.include_router(router)
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]
    handlers.install(app, settings.origin if settings else "")
    portal.install(app, settings.portal_dir if settings else None)
    app.add_middleware(Envelope, secure=settings.secure if settings else False)
    return app


def make_services(settings: Settings) -> Services:
    redis = make_redis(settings)
    secrets = Keys.of(settings.secrets())
    database = engine.create(settings.database_url, engine.API_ROLE)
    return Services(
        settings=settings,
        engine=database,
        redis=redis,
        coordinator=Coordinator.configured(settings),
        keys=secrets,
        passwords=Passwords(settings.password_memory_kib),
        signer=TokenSigner(settings.signing_key_pem()),
        staff=_staff(secrets, settings),
        rates=Rates(settings.signups_per_address, settings.redis_url),
        known_keys=KnownKeys(),
        hub=Hub(redis),
        viewers=Viewers(partial(placements.read, database)),
        readers=Readers(),
        press=Press(),
        payments=providers.configured(settings),
        providers=identity_providers.read(settings.identity_providers_file),
        status=Held(partial(snapshot.read, database), limits.STATUS_CACHED_S, limits.STATUS_READ_S),
        require_spend_room=caps.require_room,
        record_change=_record_change,
        record_refusal=admissions.note_refused,
    )


async def _record_change(request: Request, work: Work, response: Response) -> None:
    await admissions.note_admitted(request, work)
    await audit.record(request, work, response)


def _staff(keys: Keys, settings: Settings) -> dict[Staff, StaffTokens]:
    texts: dict[Staff, str | None] = {"operator": settings.operator_tokens(), "prober": settings.prober_tokens()}
    found = {}
    for staff, text in texts.items():
        try:
            found[staff] = StaffTokens.read(keys, staff, text)
        except ValueError as error:
            raise ConfigurationError(f"QUORATE_{staff.upper()}_TOKEN_FILE: {error}") from None
    return found


def make_redis(settings: Settings) -> Redis | None:
    if settings.redis_url is None:
        return None
    redis: Redis = Redis.from_url(
        settings.redis_url,
        socket_connect_timeout=2,
        socket_timeout=5,  # longer than the longest XREAD BLOCK
        health_check_interval=15,
    )
    return redis


async def close(services: Services) -> None:
    await services.hub.aclose()
    await services.viewers.aclose()
    await services.coordinator.aclose()
    await services.rates.aclose()
    if services.redis is not None:
        await services.redis.aclose()
    await services.engine.dispose()
