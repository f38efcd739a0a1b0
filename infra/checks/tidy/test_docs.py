"""Everything that the documents and the Makefile name is there."""

import re
from pathlib import Path

FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
README_FOLDER = re.compile(r"^\|\s*`([\w./-]+/)`", re.MULTILINE)
PHONY = re.compile(r"^\.PHONY: (.*)$", re.MULTILINE)
HELP = re.compile(r"^([a-z0-9-]+):.*## \S", re.MULTILINE)


def test_markdown_has_one_title(texts: dict[Path, str]) -> None:
    wrong = []
    for path, text in texts.items():
        if path.suffix == ".md":
            titles = re.findall(r"^# .+", FENCE.sub("", text), re.MULTILINE)
            if len(titles) != 1:
                wrong.append(f"{path}: {len(titles)} titles (lines that begin with one #)")
    assert not wrong, "\n".join(wrong)


def test_links_between_documents_lead_somewhere(repository: Path, texts: dict[Path, str]) -> None:
    broken = []
    for path, text in texts.items():
        if path.suffix == ".md":
            for target, _ in LINK.findall(FENCE.sub("", text)):
                elsewhere = "://" in target or target.startswith("mailto:")
                if not elsewhere and not (repository / path.parent / target).exists():
                    broken.append(f"{path}: {target}")
    assert not broken, "\n".join(broken)


def test_the_readme_lists_only_folders_that_exist(repository: Path, texts: dict[Path, str]) -> None:
    named = README_FOLDER.findall(texts[Path("README.md")])
    assert len(named) >= 6, "the README's table of folders was not found"
    assert not [folder for folder in named if not (repository / folder).is_dir()]


def test_the_readme_names_every_top_folder(repository: Path, files: list[Path], texts: dict[Path, str]) -> None:
    present = {path.parts[0] for path in files if len(path.parts) > 1 and not path.parts[0].startswith(".")}
    named = {folder.split("/")[0] for folder in README_FOLDER.findall(texts[Path("README.md")])}
    assert present <= named, f"not in the README's table: {sorted(present - named)}"


def test_every_make_target_for_people_has_help(texts: dict[Path, str]) -> None:
    makefile = texts[Path("Makefile")]
    for_people = set(PHONY.findall(makefile)[0].split())
    assert for_people == set(HELP.findall(makefile))


def test_continuous_integration_uses_the_same_door(texts: dict[Path, str]) -> None:
    assert "make test" in texts[Path(".ci/run")]


def test_indexes_list_every_page(files: list[Path], texts: dict[Path, str]) -> None:
    for folder in (Path("docs/internals"), Path("docs/notes")):
        pages = {path.name for path in files if path.parent == folder and path.suffix == ".md"} - {"README.md"}
        assert len(pages) > 5
        listed = {target for target, _ in LINK.findall(texts[folder / "README.md"]) if "/" not in target}
        assert pages == listed, folder


def test_notes_are_named_by_their_day(files: list[Path]) -> None:
    named = re.compile(r"20\d\d-[01]\d-[0-3]\d-[a-z0-9-]+\.md|README\.md")
    wrong = [path.name for path in files if path.parent == Path("docs/notes") and not named.fullmatch(path.name)]
    assert not wrong
