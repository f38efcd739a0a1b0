"""The `api` process: wait for its dependencies, bind, serve until SIGTERM."""

import asyncio
import contextlib
import errno
import gc
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import Literal

import structlog
import uvicorn
from starlette.types import ASGIApp

from quorate_api import app, exit_codes, lifecycle
from quorate_api.database.engine import API_ROLE
from quorate_api.health import service as health
from quorate_api.http.listeners import Customers
from quorate_api.http.services import Services
from quorate_api.observability import logs, telemetry
from quorate_api.settings import ConfigurationError, Settings, load

log = structlog.get_logger(__name__)

Role = Literal["api", "operator"]
VARIABLES: dict[Role, str] = {"api": "QUORATE_LISTEN", "operator": "QUORATE_OPERATOR_LISTEN"}
SHUTDOWN_S = 5  # live connections are closed after it
GARBAGE_OBJECTS = 20_000  # a long answer makes ten thousand, which go with it


def run() -> int:
    settings = load()
    if settings.portal_dir is not None and not (settings.portal_dir / "index.html").is_file():
        raise ConfigurationError(
            f"QUORATE_PORTAL_DIR: {settings.portal_dir} has no index.html; build the portal first."
        )
    logs.configure(settings.log_format)
    telemetry.configure(settings, "quorate-api")
    listeners: dict[Role, socket.socket] = {}
    wanted: dict[Role, str | None] = {"api": settings.listen, "operator": settings.operator_listen}
    try:
        for role, address in wanted.items():
            if address is None:
                continue
            listener = _bind(role, address)
            if listener is None:
                return exit_codes.PORT
            listeners[role] = listener
        with asyncio.Runner(loop_factory=uvicorn.Config(app="", log_config=None).get_loop_factory()) as runner:
            return runner.run(_serve(settings, listeners))
    finally:
        for listener in listeners.values():
            listener.close()
        telemetry.shutdown(settings)


def _bind(role: Role, address: str) -> socket.socket | None:
    host, _, port = address.rpartition(":")
    try:
        family = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host.strip("[]"), int(port)), family=family, backlog=512)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            other = f"set {VARIABLES[role]} to another; port 0 is a free one"
            why = f"the port is in use. Stop what listens there, or {other}"
        else:
            why = str(error)
        sys.stderr.write(f"quorate-api: cannot listen on {address}: {why}.\n")
        return None
    listener.setblocking(False)
    return listener


async def _serve(settings: Settings, listeners: dict[Role, socket.socket]) -> int:
    services = app.make_services(settings)
    if not await _everything_needed(services):
        await app.close(services)
        return exit_codes.DEPENDENCY
    built = app.build(services)
    servers = {"api": _Server(_config(Customers(built) if "operator" in listeners else built))}
    if "operator" in listeners:
        servers["operator"] = _Server(_config(built, lifespan="off"))
    for role, listener in listeners.items():
        host, port = listener.getsockname()[:2]
        sys.stdout.write(f"listening role={role} address={host}:{port}\n")
        log.info("serving", role=role, address=f"{host}:{port}", public_url=settings.origin)
    sys.stdout.flush()
    _leave_modules_to_themselves()
    with _signals(list(servers.values())):
        await asyncio.gather(*(servers[role].serve([listener]) for role, listener in listeners.items()))
    return 0


def _config(built: ASGIApp, lifespan: Literal["auto", "off"] = "auto") -> uvicorn.Config:
    """`lifespan` off: the application has begun already, and ends with the other server."""
    return uvicorn.Config(
        built,
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # http/address.py reads X-Forwarded-For, as QUORATE_TRUSTED_PROXIES allows
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
        timeout_keep_alive=30,
        limit_concurrency=2_000,
        h11_max_incomplete_event_size=32 << 10,
    )


def _leave_modules_to_themselves() -> None:
    """Keep the collector from modules and routes, which stay. Looking through them takes longer than most requests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)


class _Server(uvicorn.Server):
    """uvicorn's server, without its handlers of signals: `_signals` ends all servers, with exit code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def _signals(servers: Sequence[_Server]) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def end(number: int) -> None:
        for server in servers:
            server.handle_exit(number, None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def _everything_needed(services: Services) -> bool:
    """Wait for PostgreSQL and the coordinator. Without Redis only live charts fail, so the API starts without it."""
    redis = await health.redis_server(services.redis)
    if redis.state == "missing":
        log.warning("starting without Redis", detail=redis.detail)
    return await lifecycle.wait_for(
        [lambda: health.postgresql(services.engine, API_ROLE), lambda: health.fleet(services.coordinator)],
        services.settings.start_wait_s,
    )
