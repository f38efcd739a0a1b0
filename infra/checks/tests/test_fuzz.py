"""Every fuzz target has something to begin with, and is built."""

from pathlib import Path

import pytest

from quorate_checks import fuzz, fuzz_seeds


def test_every_target_is_a_binary() -> None:
    manifest = (fuzz.FOLDER / "Cargo.toml").read_text()
    assert len(fuzz.targets()) >= 5
    assert [target for target in fuzz.targets() if f'name = "{target}"' not in manifest] == []


@pytest.mark.parametrize("target", fuzz.targets())
def test_every_target_has_seeds(target: str, tmp_path: Path) -> None:
    fuzz_seeds.write(target, tmp_path)
    sizes = [seed.stat().st_size for seed in tmp_path.iterdir()]
    assert len(sizes) >= 5
    assert all(0 < size <= fuzz.INPUT_BYTES_MAX for size in sizes)
