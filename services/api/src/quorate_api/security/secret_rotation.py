"""Another secret of the API in three steps, so that every process knows all secrets that are in use.

The file has one secret a line, and the first one signs and seals. `prepare` adds the next one as the second line,
`switch` puts it first, `finish` removes the former one. Each step may be repeated, also after a crash in its midst. A
mark names the next secret by a digest, from before the file has it until it is first.
"""

import hashlib
import secrets
import time
from pathlib import Path

from quorate_api import limits
from quorate_api.security import key_files

STEPS = ("prepare", "switch", "finish")
MARK_FILE = "api-secret-next"


class SecretRotationRefused(ValueError):
    """The step cannot be made now; the message says what comes before it."""


def run(directory: Path, step: str, *, at_once: bool = False) -> str:
    """Make one of `STEPS`. Returns what to do next. `at_once`: for a leaked secret: all that it signed ends now."""
    path = directory / key_files.SECRET_FILE
    if not path.is_file():
        raise SecretRotationRefused(f"{directory} has no {key_files.SECRET_FILE}: `quorate-api keys-init` makes one")
    lines = path.read_text().split()
    if step == "prepare":
        return _prepare(directory, path, lines)
    return _switch(directory, path, lines) if step == "switch" else _finish(directory, path, lines, at_once)


def _prepare(directory: Path, path: Path, lines: list[str]) -> str:
    mark = directory / MARK_FILE
    if len(lines) > 1 and not mark.exists():
        raise SecretRotationRefused("the last exchange is not over: secret-rotate --step finish comes first")
    if len(lines) == 1:
        following = secrets.token_hex(key_files.KEY_BYTES)
        key_files.write(mark, _digest(following) + "\n", 0o600)
        key_files.write(path, f"{lines[0]}\n{following}\n", 0o600)
    return (
        f"{path} has the next secret as its second line. Copy it to every API and worker, and restart them one by one. "
        "Then: secret-rotate --step switch"
    )


def _digest(secret: str) -> str:
    """Tells secrets apart. It says nothing of one."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _switch(directory: Path, path: Path, lines: list[str]) -> str:
    mark = directory / MARK_FILE
    if len(lines) == 1:
        raise SecretRotationRefused("there is no next secret: secret-rotate --step prepare comes first")
    if mark.exists():
        following = [line for line in lines if _digest(line) == mark.read_text().strip()]
        if not following:
            raise SecretRotationRefused(f"{mark} names no line of {path}: copy both anew from where they were prepared")
        former = [line for line in lines if line not in following]
        key_files.write(path, "\n".join([*following, *former]) + "\n", 0o600)  # `finish` counts from now
        mark.unlink()
    hours = limits.SECRET_OVERLAP_S / 3_600
    return (
        f"{path} has the new secret first. Copy it to every API and worker, and restart them one by one. Then: "
        f"`quorate-api secret-reseal`. After {hours:g} h: secret-rotate --step finish"
    )


def _finish(directory: Path, path: Path, lines: list[str], at_once: bool) -> str:
    if (directory / MARK_FILE).exists():
        raise SecretRotationRefused("the next secret is not in use: secret-rotate --step switch comes first")
    left_s = path.stat().st_mtime + limits.SECRET_OVERLAP_S - time.time()
    if len(lines) > 1 and left_s > 0 and not at_once:
        raise SecretRotationRefused(
            f"sessions and links under the former secret are good for up to {left_s / 3_600:.1f} h. Wait, or end them "
            "now with --now: people then log in again"
        )
    key_files.write(path, lines[0] + "\n", 0o600)
    return f"{path} has the present secret alone. Copy it to every API and worker, and restart them one by one. Done."
