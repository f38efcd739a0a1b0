"""The error pages are complete, and stale ones are noticed."""

import json
from pathlib import Path

import pytest

from quorate_checks import error_pages


def test_every_code_has_a_page_with_what_to_do() -> None:
    source = json.loads(error_pages.SOURCE.read_text())
    pages = error_pages.pages(source, None)
    assert len(pages) == len(source["data_plane"]) + len(source["client_side"]) + 1
    for folder, errors in (("data-plane", source["data_plane"]), ("sdk", source["client_side"])):
        for error in errors:
            assert error["action"] in pages[f"{folder}/{error['name']}.md"]
            assert f"({folder}/{error['name']}.md)" in pages["README.md"]


def test_the_index_lists_the_codes_of_the_api_too() -> None:
    problem = {"code": "name_taken", "status": 409, "title": "The name is taken"}
    index = error_pages.pages(json.loads(error_pages.SOURCE.read_text()), [problem])["README.md"]
    assert "| 409 | [`name_taken`](name_taken.md) | The name is taken |" in index


def test_a_repeated_code_is_refused() -> None:
    error = {"code": 1, "name": "a", "fault": "client", "retry": "never", "meaning": "m", "action": "a"}
    with pytest.raises(ValueError, match="repeats a code"):
        error_pages.pages({"data_plane": [error], "client_side": [{**error, "name": "b"}]}, None)


def test_a_changed_or_left_over_page_is_stale_and_gen_mends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_pages, "FOLDER", tmp_path)
    assert error_pages.main(check=True) == 1
    assert error_pages.main(check=False) == 0
    assert error_pages.main(check=True) == 0
    (tmp_path / "name_taken.md").write_text("the API's")
    (tmp_path / "data-plane" / "retired_code.md").write_text("old")
    (tmp_path / "data-plane" / "throttled.md").write_text("edited by hand")
    assert error_pages.main(check=True) == 1
    assert error_pages.main(check=False) == 0
    assert error_pages.main(check=True) == 0
    assert not (tmp_path / "data-plane" / "retired_code.md").exists()
    assert (tmp_path / "name_taken.md").exists()
