"""A new cluster from a folder of backups. PostgreSQL itself replays the log when it is started on it."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from quorate_api.backup import tools
from quorate_api.backup.folder import BackupFolder, Base

REPLAYED = "quorate_wal"  # within the cluster: its server may read it whoever owns the backups


@dataclass(frozen=True, slots=True)
class Restored:
    base: Base
    segments: int


def restore(folder: Path, cluster: Path, until: datetime | None) -> Restored:
    """Raises `BackupFailed`. `until`: what was committed later is left out; None: nothing is."""
    if cluster.exists() and any(cluster.iterdir()):
        raise tools.BackupFailed(f"{cluster} is not empty: nothing was changed. Move it away first.")
    backups = BackupFolder(folder)
    if not backups.wal.is_dir():
        raise tools.BackupFailed(f"{folder} holds no backups: it has no folder wal.")
    fitting = [base for base in backups.bases() if until is None or base.taken_at <= until]
    if not fitting:
        raise tools.BackupFailed(f"{folder} holds no base backup that is old enough, and whole.")
    base = fitting[-1]
    _verify(base)
    cluster.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(base.path, cluster, dirs_exist_ok=True)
    cluster.chmod(0o700)
    segments = _copy_log(backups, base, cluster / REPLAYED)
    with (cluster / "postgresql.auto.conf").open("a") as file:
        file.write(_settings(until))
    (cluster / "recovery.signal").touch()
    (cluster / "postmaster.pid").unlink(missing_ok=True)
    return Restored(base, segments)


def _verify(base: Base) -> None:
    """Raises `BackupFailed` unless each file is as the manifest has it. No program of PostgreSQL is needed."""
    try:
        files = json.loads((base.path / "backup_manifest").read_bytes())["Files"]
        for file in files:
            with (base.path / file["Path"]).open("rb") as found:
                if hashlib.file_digest(found, "sha256").hexdigest() != file["Checksum"]:
                    raise tools.BackupFailed(f"{base.path}: {file['Path']} is damaged. Take an earlier base: --until.")
    except (OSError, ValueError, KeyError) as error:
        raise tools.BackupFailed(f"{base.path} is not whole: {error}. Take an earlier base: --until.") from None


def _copy_log(backups: BackupFolder, base: Base, target: Path) -> int:
    target.mkdir(mode=0o700)
    first, count = base.first_segment(), 0
    for segment in backups.segments():
        if segment.name[8:24] >= first[8:24]:
            # The last one was being written. It is as long as the others, with zeros at its end.
            shutil.copyfile(segment, target / segment.name.removesuffix(".partial"))
            count += 1
    for history in backups.wal.glob("*.history"):
        shutil.copyfile(history, target / history.name)
    return count


def _settings(until: datetime | None) -> str:
    lines = [f"restore_command = 'cp {REPLAYED}/%f %p'", "recovery_target_timeline = 'latest'"]
    # A synchronous receiver of the former cluster is not there, and nobody must wait for it.
    lines.append("synchronous_standby_names = ''")
    if until is not None:
        lines += [f"recovery_target_time = '{until.isoformat()}'", "recovery_target_action = 'promote'"]
    return "\n# By quorate-api restore\n" + "\n".join(lines) + "\n"
