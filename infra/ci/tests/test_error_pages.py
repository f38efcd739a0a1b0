"""The error pages are complete, and stale ones are noticed."""

import json
from pathlib import Path

import pytest

from quorate_ci import error_pages


def test_every_code_has_a_page_with_what_to_do() -> None:
    source = json.loads(error_pages.SOURCE.read_text())
    pages = error_pages.pages(source)
    assert len(pages) == len(source["data_plane"]) + 1
    for error in source["data_plane"]:
        assert error["action"] in pages[f"{error['name']}.md"]
        assert f"({error['name']}.md)" in pages["README.md"]


def test_a_repeated_code_is_refused() -> None:
    error = {"code": 1, "name": "a", "fault": "client", "retry": "never", "meaning": "m", "action": "a"}
    with pytest.raises(ValueError, match="repeats a code"):
        error_pages.pages({"data_plane": [error, {**error, "name": "b"}]})


def test_a_changed_or_left_over_page_is_stale_and_gen_mends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_pages, "FOLDER", tmp_path)
    assert error_pages.main(check=True) == 1
    assert error_pages.main(check=False) == 0
    assert error_pages.main(check=True) == 0
    (tmp_path / "retired_code.md").write_text("old")
    (tmp_path / "throttled.md").write_text("edited by hand")
    assert error_pages.main(check=True) == 1
    assert error_pages.main(check=False) == 0
    assert error_pages.main(check=True) == 0
    assert not (tmp_path / "retired_code.md").exists()
