"""Tests are of the profile that is shipped, whatever was measured on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate_papers import profiles


@pytest.fixture(autouse=True)
def shipped_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(profiles, "LOCAL", tmp_path / "local.json")
    monkeypatch.setattr(profiles, "MEASURED", profiles.DEFAULT)
    profiles.chosen.cache_clear()
    yield
    profiles.chosen.cache_clear()
