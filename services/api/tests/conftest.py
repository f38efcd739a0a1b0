"""A real PostgreSQL and a real Redis for the whole run, and a clone of the migrated template for each test."""

import logging
import os
import shutil
import socket
import tempfile
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import psycopg
import pytest
import structlog
import uvicorn
from psycopg import sql
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import app as application
from quorate_api.coordinator.client import Coordinator
from quorate_api.database import engine as database
from quorate_api.database.migrate import upgrade
from quorate_api.embedded import postgres, redis
from quorate_api.http.services import Services
from quorate_api.security import key_files
from quorate_api.settings import Settings
from support.coordinator import FakeCoordinator
from support.customer import Customer
from support.mailbox import Mailbox

TEMPLATE = "quorate_template"
_SERVERS = pytest.StashKey[Path]()

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))


def pytest_configure(config: pytest.Config) -> None:
    """The controller starts the servers and passes their addresses to the workers."""
    if hasattr(config, "workerinput"):
        os.environ.update(config.workerinput["quorate_servers"])
        return
    if config.option.collectonly:
        return
    folder = config.stash[_SERVERS] = Path(tempfile.mkdtemp(prefix="quorate-test-"))
    database_url = postgres.start(folder / "postgres", database=TEMPLATE, durable=False, max_connections=200)
    upgrade(database_url, database.migrations_dir(None))
    key_files.make_keys(folder / "keys")
    os.environ["TEST_TEMPLATE_URL"] = database_url
    os.environ["TEST_REDIS_URL"] = redis.start(folder / "redis")
    os.environ["TEST_KEYS_DIR"] = str(folder / "keys")


# They lay use into the hour before now, and look for it on the present month's bill.
OF_THE_HOUR_BEFORE = ("test_ingest.py", "test_a_worker_killed_at_random_bills_exactly")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    now = datetime.now(UTC)
    if now.day == 1 and now.hour < 2:
        skip = pytest.mark.skip(reason="the hour before now is of another month")
        for item in items:
            if any(name in item.nodeid for name in OF_THE_HOUR_BEFORE):
                item.add_marker(skip)


def pytest_configure_node(node: object) -> None:
    node.workerinput["quorate_servers"] = {  # type: ignore[attr-defined]
        name: os.environ[name] for name in ("TEST_TEMPLATE_URL", "TEST_REDIS_URL", "TEST_KEYS_DIR")
    }


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_SERVERS, None)
    if folder is not None:
        redis.stop(folder / "redis")
        postgres.stop(folder / "postgres")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def owner_url() -> Iterator[str]:
    """The owner's URL of a migrated, empty database for this test alone."""
    template_url = os.environ["TEST_TEMPLATE_URL"]
    name = f"test_{uuid.uuid4().hex}"
    admin_url = template_url.replace(f"/{TEMPLATE}", "/postgres")
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(TEMPLATE))
        )
    yield template_url.replace(f"/{TEMPLATE}", f"/{name}")
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def redis_url() -> str:
    """A Redis database of this xdist worker's own."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return os.environ["TEST_REDIS_URL"].removesuffix("/0") + f"/{number % 16}"


@pytest.fixture
async def bus(redis_url: str) -> AsyncIterator[Redis]:
    client: Redis = Redis.from_url(redis_url, socket_timeout=5)
    await client.flushdb()
    yield client
    await client.aclose()


@pytest.fixture
def coordinator() -> FakeCoordinator:
    return FakeCoordinator()


@pytest.fixture
def fleet(coordinator: FakeCoordinator) -> Iterator[str]:
    """The fake coordinator on a port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(coordinator.app, log_config=None))
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listener.close()


@pytest.fixture
def environment(owner_url: str, redis_url: str, fleet: str, tmp_path: Path) -> dict[str, str]:
    keys = Path(os.environ["TEST_KEYS_DIR"])
    token = tmp_path / "token"
    token.write_text(FakeCoordinator.TOKEN)
    return {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": owner_url,
        "REDIS_URL": redis_url,
        "QUORATE_LISTEN": "127.0.0.1:0",
        "QUORATE_COORDINATOR_URL": fleet,
        "QUORATE_COORDINATOR_TOKEN_FILE": str(token),
        "QUORATE_TOKEN_SIGNING_KEY_FILE": str(keys / "token-signing-key.pem"),
        "QUORATE_SECRET_FILE": str(keys / "api-secret"),
        "QUORATE_START_WAIT_S": "0.5",
    }


@pytest.fixture
def settings(owner_url: str, redis_url: str, tmp_path: Path) -> Settings:
    keys = Path(os.environ["TEST_KEYS_DIR"])
    token_file = tmp_path / "coordinator-token"
    token_file.write_text(FakeCoordinator.TOKEN)
    return Settings(
        database_url=owner_url,
        redis_url=redis_url,
        public_url="http://testserver",
        allow_http=True,
        coordinator_url="http://coordinator",
        coordinator_token_file=token_file,
        token_signing_key_file=keys / key_files.SIGNING_KEY_FILE,
        secret_file=keys / key_files.SECRET_FILE,
        operator_token_file=keys / key_files.STAFF_TOKEN_FILES["operator"],
        prober_token_file=keys / key_files.STAFF_TOKEN_FILES["prober"],
        password_memory_kib=8_192,
        signups_per_address="1000/hour",
    )


@pytest.fixture
async def services(settings: Settings, coordinator: FakeCoordinator, bus: Redis) -> AsyncIterator[Services]:
    made = application.make_services(settings)
    await made.coordinator.aclose()
    made.coordinator = Coordinator(
        ["http://coordinator"], FakeCoordinator.TOKEN, transport=httpx2.ASGITransport(app=coordinator.app)
    )
    yield made
    await application.close(made)


@pytest.fixture
def mailbox(tmp_path: Path, services: Services, worker_engine: AsyncEngine) -> Mailbox:
    """Named before `alice`, so that the service sends mail when she signs up."""
    return Mailbox(tmp_path / "mail", services, worker_engine)


@pytest.fixture
async def api(services: Services) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the API that is not logged in. An unexpected exception fails the test."""
    app = application.build(services)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=True)
    async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as client:
        yield client


@pytest.fixture
async def operator(api: httpx2.AsyncClient, settings: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    """An operator's client of the API."""
    async with _staff(api, settings.operator_tokens()) as client:
        yield client


@pytest.fixture
async def prober(api: httpx2.AsyncClient, settings: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    """A prober's client of the API."""
    async with _staff(api, settings.prober_tokens()) as client:
        yield client


def _staff(api: httpx2.AsyncClient, tokens_: str | None) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {(tokens_ or '').strip()}"}
    return httpx2.AsyncClient(transport=api._transport, base_url="http://testserver", headers=headers)


@pytest.fixture
async def alice(api: httpx2.AsyncClient) -> Customer:
    return await Customer.sign_up(api, "alice@example.com")


@pytest.fixture
async def bob(api: httpx2.AsyncClient) -> Customer:
    return await Customer.sign_up(api, "bob@example.com")


@pytest.fixture
async def worker_engine(owner_url: str) -> AsyncIterator[AsyncEngine]:
    engine = database.create(owner_url, database.WORKER_ROLE)
    yield engine
    await engine.dispose()


@pytest.fixture
def owner(owner_url: str) -> Iterator[psycopg.Connection]:
    """The database as its owner sees it, without row-level security."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        yield connection
