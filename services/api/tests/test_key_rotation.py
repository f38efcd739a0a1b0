"""The signing key is exchanged in steps: at each, the published keys have the one that signs."""

import json
import os
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import UUID

import jwt
import pytest

from quorate_api import exit_codes, limits, main
from quorate_api.security import key_files, key_rotation
from quorate_api.security.key_rotation import RotationRefused
from quorate_api.security.tokens import TokenSigner
from support.crashes import repeated

GROUP = UUID(int=7)


def signer(folder: Path) -> TokenSigner:
    return TokenSigner((folder / key_files.SIGNING_KEY_FILE).read_text())


def published(folder: Path) -> list[str]:
    return [key["kid"] for key in json.loads((folder / key_files.PUBLIC_KEYS_FILE).read_text())["keys"]]


def test_a_rotation_leaves_no_gap(tmp_path: Path) -> None:
    key_files.make_keys(tmp_path)
    first = signer(tmp_path).key_id
    for step in ("switch",):
        with pytest.raises(RotationRefused, match="prepare"):
            key_rotation.run(tmp_path, step)
    for _ in range(2):  # each step may be repeated
        key_rotation.run(tmp_path, "prepare")
        assert signer(tmp_path).key_id == first == published(tmp_path)[0]
        assert len(published(tmp_path)) == 2
    second = published(tmp_path)[1]
    with pytest.raises(RotationRefused, match="switch"):
        key_rotation.run(tmp_path, "finish")
    for _ in range(2):
        key_rotation.run(tmp_path, "switch")
        assert signer(tmp_path).key_id == second
        assert published(tmp_path) == [first, second]
    key_files.make_keys(tmp_path)
    assert published(tmp_path) == [first, second], "a restart takes none away"
    with pytest.raises(RotationRefused, match="valid for up to 61 min"):
        key_rotation.run(tmp_path, "finish")
    over = (tmp_path / key_files.SIGNING_KEY_FILE).stat().st_mtime - limits.TOKEN_LIFETIME_S - 61
    os.utime(tmp_path / key_files.SIGNING_KEY_FILE, (over, over))
    for _ in range(2):
        key_rotation.run(tmp_path, "finish")
        assert published(tmp_path) == [second]


def test_a_leaked_key_ends_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key_files.make_keys(tmp_path)
    leaked = signer(tmp_path)
    for step in ("prepare", "switch"):
        assert main.main(["keys-rotate", "--dir", str(tmp_path), "--step", step]) == 0
    assert main.main(["keys-rotate", "--dir", str(tmp_path), "--step", "finish"]) == exit_codes.FAILED
    assert "--now" in capsys.readouterr().err
    assert main.main(["keys-rotate", "--dir", str(tmp_path), "--step", "finish", "--now"]) == 0
    token = leaked.sign("key", GROUP, ["append"], datetime.now(UTC)).text
    assert jwt.get_unverified_header(token)["kid"] not in published(tmp_path)
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.glob("*.pem"))


def test_without_keys_it_says_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(RotationRefused, match="keys-init"):
        key_rotation.run(tmp_path, "prepare")


def test_a_switch_that_crashes_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each of its effects. The former key's tokens keep their hour from the switch on."""
    crashes = 0
    for number in range(4):
        folder = tmp_path / str(number)
        key_files.make_keys(folder)
        first = signer(folder).key_id
        key_rotation.run(folder, "prepare")
        long_ago = time.time() - 10 * limits.TOKEN_LIFETIME_S
        for name in (key_files.SIGNING_KEY_FILE, key_rotation.NEXT_KEY_FILE):
            os.utime(folder / name, (long_ago, long_ago))
        crashes += repeated(monkeypatch, number, partial(key_rotation.run, folder, "switch"))
        assert signer(folder).key_id != first
        with pytest.raises(RotationRefused, match="valid for up to 61 min"):
            key_rotation.run(folder, "finish")
        assert first in published(folder)
    assert crashes == 2
