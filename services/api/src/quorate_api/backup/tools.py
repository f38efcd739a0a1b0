"""PostgreSQL's own programs: found, and run with the password outside of their arguments."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import psycopg

from quorate_api.embedded import EmbeddedError, postgres
from quorate_api.settings import ConfigurationError


class BackupFailed(Exception):
    """The text is for people."""


def find(name: str, release: int) -> Path:
    """The program, of PostgreSQL's major `release` or a later one. Raises `ConfigurationError`.

    It is in QUORATE_POSTGRES_BIN_DIR, in PATH, or comes with the embedded PostgreSQL."""
    folder, on_path = os.environ.get("QUORATE_POSTGRES_BIN_DIR"), shutil.which(name)
    places = [Path(folder) / name] if folder else [Path(on_path) if on_path else None, _embedded(name)]
    for path in places:
        if path is not None and path.is_file() and _release(path) >= release:
            return path
    raise ConfigurationError(
        f"{name} of PostgreSQL {release} or later is not found: install your server's client programs, or set "
        "QUORATE_POSTGRES_BIN_DIR to their folder."
    )


def release_of(database_url: str) -> int:
    """The server's major release. Raises `psycopg.Error`."""
    with psycopg.connect(database_url, connect_timeout=10) as connection:
        return connection.info.server_version // 10_000


def environment(database_url: str, application: str) -> dict[str, str]:
    """The connection as libpq reads it: no password is among the arguments, where others on the machine see it."""
    parts = urlsplit(database_url)
    given = {
        "PGHOST": parts.hostname or "",
        "PGPORT": str(parts.port or 5432),
        "PGUSER": unquote(parts.username or ""),
        "PGPASSWORD": unquote(parts.password or ""),
        "PGAPPNAME": application,
        "PGCONNECT_TIMEOUT": "10",
    }
    options = {"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT"}
    given |= {options[name]: value for name, value in parse_qsl(parts.query) if name in options}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return kept | {name: value for name, value in given.items() if value}


def run(command: Sequence[str], env: dict[str, str] | None = None) -> None:
    """Raises `BackupFailed` with the program's last words."""
    done = subprocess.run(  # noqa: S603
        list(command), env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        words = " ".join(done.stderr.split())[-500:] or f"exit code {done.returncode}"
        raise BackupFailed(f"{Path(command[0]).name}: {words}")


def _release(program: Path) -> int:
    done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return int(found.group(1)) if found else 0


def _embedded(name: str) -> Path | None:
    try:
        return postgres.binaries() / name
    except EmbeddedError:
        return None
