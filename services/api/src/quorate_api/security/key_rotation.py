"""Another signing key in three steps, so that servers know every key whose tokens they are shown.

`prepare` publishes the next key beside the present one. `switch` signs with it. `finish` ends the former one, once the
last token that it signed has expired. Each step may be repeated.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from quorate_api import limits
from quorate_api.security import key_files

NEXT_KEY_FILE = "token-signing-key-next.pem"
MARGIN_S = 60  # for clocks, and for an API that was restarted late
STEPS = ("prepare", "switch", "finish")


class RotationRefused(ValueError):
    """The step cannot be made now; the message says what comes before it."""


def run(directory: Path, step: str, *, at_once: bool = False) -> str:
    """Make one of `STEPS`. Returns what to do next. `at_once`: for a key that leaked; its tokens end now."""
    if not (directory / key_files.SIGNING_KEY_FILE).is_file():
        raise RotationRefused(f"{directory} has no {key_files.SIGNING_KEY_FILE}: `quorate-api keys-init` makes one")
    if step == "prepare":
        return _prepare(directory)
    return _switch(directory) if step == "switch" else _finish(directory, at_once)


def _prepare(directory: Path) -> str:
    following = directory / NEXT_KEY_FILE
    if not following.exists():
        key_files.write(following, key_files.signing_key(os.urandom(key_files.KEY_BYTES)), 0o600)
    _publish(directory, [*_published(directory), key_files.public_key(following)])
    return (
        f"{directory / key_files.PUBLIC_KEYS_FILE} has the next key, too. Copy it to every coordinator, which reads it "
        "within a second. Then: keys-rotate --step switch"
    )


def _switch(directory: Path) -> str:
    following, present = directory / NEXT_KEY_FILE, directory / key_files.SIGNING_KEY_FILE
    if following.exists():
        if key_files.public_key(following) not in _published(directory):
            raise RotationRefused("servers do not know the next key: keys-rotate --step prepare comes first")
        os.utime(following)  # `finish` counts from now. It comes first: after a crash, a repetition finds no next key
        following.replace(present)
    elif len(_published(directory)) == 1:
        raise RotationRefused("there is no next key: keys-rotate --step prepare comes first")
    hours = limits.TOKEN_LIFETIME_S / 3_600
    return (
        f"{present} is the new key. Copy it to every API, and restart them one by one. After {hours:g} h: keys-rotate "
        "--step finish"
    )


def _finish(directory: Path, at_once: bool) -> str:
    if (directory / NEXT_KEY_FILE).exists():
        raise RotationRefused("the next key is not in use: keys-rotate --step switch comes first")
    present = directory / key_files.SIGNING_KEY_FILE
    left_s = present.stat().st_mtime + limits.TOKEN_LIFETIME_S + MARGIN_S - time.time()
    if len(_published(directory)) > 1 and left_s > 0 and not at_once:
        raise RotationRefused(
            f"tokens of the former key are valid for up to {left_s / 60:.0f} min. Wait, or end them now with --now: "
            "clients then ask for new handles"
        )
    _publish(directory, [key_files.public_key(present)])
    return f"{directory / key_files.PUBLIC_KEYS_FILE} has the present key alone. Copy it to every coordinator. Done."


def _published(directory: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((directory / key_files.PUBLIC_KEYS_FILE).read_text())["keys"]
    return found


def _publish(directory: Path, keys: list[dict[str, Any]]) -> None:
    unique = {key["kid"]: key for key in keys}
    key_files.write(directory / key_files.PUBLIC_KEYS_FILE, key_files.jwks(list(unique.values())), 0o644)
