"""The copies of shared files are fresh, and a stale one is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate_offline import shared_files


def test_copies_are_fresh() -> None:
    assert shared_files.main(["--check"]) == 0


def test_a_stale_copy_is_found_and_written_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = tmp_path / "infra/terraform/modules"
    source = tmp_path / "infra/terraform/shared/inputs.tf"
    for folder in (modules / "aws", modules / "gcp", source.parent):
        folder.mkdir(parents=True)
    source.write_text('variable "name" {}\n')
    monkeypatch.setattr(shared_files, "REPOSITORY", tmp_path)
    monkeypatch.setattr(shared_files, "TERRAFORM", tmp_path / "infra/terraform")
    monkeypatch.setattr(shared_files, "COPIES", {source: ["aws/inputs.tf", "gcp/inputs.tf"]})
    assert shared_files.main([]) == 0
    assert shared_files.main(["--check"]) == 0
    (modules / "gcp/inputs.tf").write_text('variable "name" {}\n')
    capsys.readouterr()
    assert shared_files.main(["--check"]) == 1
    assert capsys.readouterr().out == "stale: infra/terraform/modules/gcp/inputs.tf\n"
