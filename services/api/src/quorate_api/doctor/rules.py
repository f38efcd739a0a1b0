"""The meaning of each look: (values) → finding. Pure."""

import stat
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from quorate_api import limits
from quorate_api.coordinator.schemas import ServerView
from quorate_api.doctor.findings import Finding

IDS_SHOWN = 3


def of_clock(where: str, theirs: datetime, ours: datetime) -> Finding:
    off_s = abs((theirs - ours).total_seconds())
    subject = f"clock of {where}"
    if off_s <= limits.DOCTOR_CLOCK_S:
        return Finding(subject, "ok", f"within {limits.DOCTOR_CLOCK_S:g} s of this machine's")
    todo = "Run a time service on both machines: tokens, minutes of SLAs and months go by clocks."
    return Finding(subject, "fail", f"{off_s:.0f} s away from this machine's", todo)


def of_secret_file(name: str, mode: int) -> Finding:
    subject = f"file of {name}"
    if stat.S_IMODE(mode) & 0o077:
        return Finding(subject, "fail", f"others on the machine may read it ({stat.S_IMODE(mode):o})", "chmod 600 it.")
    return Finding(subject, "ok", "its owner alone may read it")


def of_groups(known: Collection[UUID], placed: Collection[UUID]) -> list[Finding]:
    """`known`: of the database. `placed`: of the coordinator."""
    subject = "groups"
    missing, unknown = set(known) - set(placed), set(placed) - set(known)
    found = []
    if missing:
        text = f"{len(missing)} of the database are not at the coordinator: {_ids(missing)}"
        found.append(Finding(subject, "fail", text, "Its log is older than the database: docs/operating/backups.md."))
    if unknown:
        text = f"{len(unknown)} of the coordinator are not in the database: {_ids(unknown)}"
        found.append(Finding(subject, "fail", text, "The database is older: docs/operating/backups.md."))
    return found or [Finding(subject, "ok", f"{len(set(known))}, the same in the database and at the coordinator")]


def of_servers(servers: Sequence[ServerView]) -> Finding:
    subject = "servers"
    if not servers:
        return Finding(subject, "fail", "none has joined", "Start one with a join token: docs/operating/terraform.md.")
    gone = [server.name for server in servers if not server.alive]
    ill = [server.name for server in servers if server.alive and (server.slow or server.storage_fault)]
    text = f"{len(servers)}, of which {len(servers) - len(gone)} are alive"
    if gone:
        return Finding(subject, "warn", f"{text}; not {', '.join(sorted(gone))}", "Start them, or give them up.")
    if ill:
        return Finding(subject, "warn", f"{text}; slow or with a faulty disk: {', '.join(sorted(ill))}", "Drain them.")
    return Finding(subject, "ok", text)


def of_backlog(stored_until: datetime | None, now: datetime) -> Finding:
    subject = "usage"
    if stored_until is None:
        return Finding(subject, "warn", "none was stored so far", "Is the worker running? Groups report each minute.")
    late = now - stored_until
    if late <= timedelta(seconds=limits.STATUS_USAGE_AGE_S_OPERATIONAL):
        return Finding(subject, "ok", f"stored until {late.total_seconds():.0f} s ago")
    todo = "Is the worker running? docs/operating/runbooks has UsageBacklog."
    return Finding(subject, "fail", f"stored until {late.total_seconds() / 60:.0f} min ago", todo)


def of_backups(newest: datetime | None, now: datetime) -> Finding:
    subject = "backups"
    if newest is None:
        return Finding(subject, "fail", "there is no base backup", "Start `quorate-api backup`.")
    age = now - newest
    if age <= timedelta(seconds=2 * limits.BACKUP_BASE_EVERY_S):
        return Finding(subject, "ok", f"the newest base backup is {age.total_seconds() / 3600:.1f} h old")
    return Finding(
        subject, "fail", f"the newest base backup is {age.days} days old", "Is `quorate-api backup` running?"
    )


def _ids(ids: Collection[UUID]) -> str:
    shown = ", ".join(str(each) for each in sorted(ids)[:IDS_SHOWN])
    return shown + (", …" if len(ids) > IDS_SHOWN else "")
