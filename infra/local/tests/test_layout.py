"""The state folder is the stack's own, or left alone."""

import stat
from pathlib import Path

import pytest

from quorate_local.layout import Layout, NotAStateFolder, read_json, write_json


def test_the_folder_is_made_with_private_secrets_and_wiped(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "state")
    layout.create()
    assert stat.S_IMODE(layout.secrets.stat().st_mode) == 0o700
    layout.create()  # again is fine
    layout.wipe()
    assert not layout.root.exists()


def test_a_folder_with_other_things_is_neither_used_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(NotAStateFolder, match="choose another STATE"):
        Layout(tmp_path).create()
    with pytest.raises(NotAStateFolder):
        Layout(tmp_path).wipe()
    assert (tmp_path / "thesis.txt").exists()


def test_json_files_are_whole_or_absent(tmp_path: Path) -> None:
    file = tmp_path / "value.json"
    assert read_json(file) is None
    file.write_text('{"half":')
    assert read_json(file) is None
    write_json(file, {"a": 1}, 0o600)
    assert read_json(file) == {"a": 1}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
