"""The embedded servers: start, find running, stop, keep stored data, explain errors."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import psycopg
import pytest
from redis import Redis
from redis.exceptions import RedisError

from quorate_api.embedded import EmbeddedError, postgres, redis


def put_postgres(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (n int)")


def has_postgres(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT to_regclass('kept') IS NOT NULL").fetchone() == (True,)


def put_redis(url: str) -> None:
    with Redis.from_url(url) as client:
        client.set("kept", 1)


def has_redis(url: str) -> bool:
    with Redis.from_url(url) as client:
        return client.get("kept") == b"1"


CASES = [(postgres, put_postgres, has_postgres), (redis, put_redis, has_redis)]


@pytest.mark.parametrize(("server", "put", "has"), CASES, ids=["postgres", "redis"])
def test_start_use_and_stop(
    server: ModuleType, put: Callable[[str], None], has: Callable[[str], bool], tmp_path: Path
) -> None:
    folder = tmp_path / "a folder with spaces"
    assert server.pid(folder) is None
    server.stop(folder)
    url = server.start(folder)
    try:
        pid = server.pid(folder)
        assert pid is not None
        put(url)
        assert server.start(folder) == url, "found running"
        assert server.pid(folder) == pid
        os.kill(pid, 9)
        deadline = 200
        while server.pid(folder) is not None and (deadline := deadline - 1):
            socket.socket().close()
        assert server.start(folder) == url, "the same port after a crash"
        if server is postgres:
            assert has(url)
        server.stop(folder)
        assert server.pid(folder) is None
        assert has(server.start(folder)), "kept over a stop"
        with pytest.raises(EmbeddedError, match="runs already"):
            server.start(folder, port=1)
    finally:
        server.stop(folder)
    secret = folder / "password"
    assert secret.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("server", [postgres, redis])
def test_a_port_in_use(server: ModuleType, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(EmbeddedError, match="in use"):
        server.start(tmp_path / "data", port=taken.getsockname()[1])


@pytest.mark.parametrize(
    ("server", "variable"), [(postgres, "QUORATE_POSTGRES_BIN_DIR"), (redis, "QUORATE_REDIS_SERVER")]
)
def test_without_the_binaries(
    server: ModuleType, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "nowhere"))
    with pytest.raises((EmbeddedError, FileNotFoundError)):
        server.start(tmp_path / "data")


def test_a_password_is_needed(tmp_path: Path) -> None:
    url = redis.start(tmp_path / "redis")
    try:
        with Redis.from_url(f"redis://:wrong@{url.split('@')[1]}") as client, pytest.raises(RedisError):
            client.ping()
    finally:
        redis.stop(tmp_path / "redis")
