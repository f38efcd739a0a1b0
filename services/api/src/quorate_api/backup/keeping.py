"""The process that keeps backups: a base backup each day, and the log as it is written."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType

import psycopg

from quorate_api import exit_codes, limits
from quorate_api.backup import tools
from quorate_api.backup.folder import BackupFolder
from quorate_api.backup.repository import SLOT, create_slot

EVERY = timedelta(seconds=limits.BACKUP_BASE_EVERY_S)


class Keeper:
    """`pg_receivewal` runs as its child, and is begun again when it ends."""

    def __init__(self, database_url: str, folder: Path) -> None:
        self._url = database_url
        self._folder = BackupFolder(folder)
        self._env = tools.environment(database_url, SLOT)
        self._release = tools.release_of(database_url)
        self._stop = threading.Event()
        self._not_before = 0.0

    def run(self, *, once: bool) -> int:
        """`once`: one base backup that needs no further log, then the end. Otherwise until SIGTERM or SIGINT."""
        self._folder.create()
        if once:
            self._base(with_log=True)
            return 0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)
        create_slot(self._url)
        receiver = self._receive()
        _say("backup ready")
        try:
            while not self._stop.wait(limits.BACKUP_LOOK_S):
                if receiver.poll() is not None:
                    _say("the log's stream ended; it is begun again, where it ended")
                    time.sleep(limits.BACKUP_LOOK_S)
                    receiver = self._receive()
                self._base_if_due()
        finally:
            receiver.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                receiver.wait(limits.BACKUP_STOP_S)
        return 0

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()

    def _base_if_due(self) -> None:
        bases = self._folder.bases()
        is_due = not bases or datetime.now(UTC) - bases[-1].taken_at >= EVERY
        if not is_due or time.monotonic() < self._not_before:
            return
        try:
            self._base(with_log=False)
        except tools.BackupFailed as error:
            _say(f"no base backup now: {error}")
            self._not_before = time.monotonic() + limits.BACKUP_AGAIN_S
            return
        for path in self._folder.forget(limits.BACKUP_BASES_KEPT):
            _say(f"removed {path.name}")

    def _base(self, *, with_log: bool) -> None:
        draft, whole = self._folder.new_base(datetime.now(UTC))
        program = tools.find("pg_basebackup", self._release)
        command = [
            str(program), "--pgdata", str(draft), "--format=plain", "--checkpoint=fast",
            "--wal-method", "stream" if with_log else "none", "--manifest-checksums=SHA256", "--no-password",
        ]  # fmt: skip
        tools.run(command, self._env)
        draft.rename(whole)
        _say(f"base backup {whole.name}")

    def _receive(self) -> subprocess.Popen[bytes]:
        program = tools.find("pg_receivewal", self._release)
        command = [
            str(program), "--directory", str(self._folder.wal), "--slot", SLOT, "--synchronous", "--no-password",
        ]  # fmt: skip
        return subprocess.Popen(command, env=self._env, stdin=subprocess.DEVNULL)  # noqa: S603


def keep(database_url: str, folder: Path, *, once: bool) -> int:
    """The exit code. Failures are told on stderr."""
    try:
        return Keeper(database_url, folder).run(once=once)
    except (tools.BackupFailed, psycopg.Error, OSError) as error:
        sys.stderr.write(f"quorate-api: backup: {' '.join(str(error).split())}\n")
        return exit_codes.FAILED


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
