"""Words that must not be in the project: this machine's paths, registries' hosts, promises to oneself."""

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

LOCK_FILES = re.compile(r"(\.lock|lock\.json|lock\.yaml|requirements[^/]*\.txt)$|^infra/setup/.*\.txt$")
DOWNLOAD_ADDRESS = re.compile(r'"resolved": *"https?://|^ *(url|source) *= .*https?://[^"]*\.(whl|tar\.gz|crate)', re.M)
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")) + r")\b")
PUBLIC_HOME = {"/", "/root", "/home", "/tmp"}  # too general to mean this machine


def _lines_with(pattern: re.Pattern[str], texts: dict[Path, str]) -> list[str]:
    found = []
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path}:{number}: {line.strip()[:120]}")
    return found


def test_no_paths_of_this_machine(repository: Path, texts: dict[Path, str]) -> None:
    folders = {str(repository), str(repository.parent), os.environ.get("HOME", "")} - PUBLIC_HOME - {""}
    pattern = re.compile("|".join(re.escape(folder) + r"\b" for folder in sorted(folders)))
    assert not (found := _lines_with(pattern, texts)), "\n".join(found)


def test_no_hosts_of_package_registries(texts: dict[Path, str]) -> None:
    """Lock files hold hashes; from where to fetch is the business of the machine that fetches."""
    hosts = _configured_hosts()
    locks = {path: text for path, text in texts.items() if LOCK_FILES.search(str(path))}
    assert locks, "no lock file was found: the pattern above is wrong"
    found = _lines_with(DOWNLOAD_ADDRESS, locks)
    if hosts:
        found += _lines_with(re.compile("|".join(map(re.escape, sorted(hosts)))), texts)
    assert not found, "\n".join(found)


def test_nothing_is_left_for_later_in_comments(texts: dict[Path, str]) -> None:
    """Missing work stands in the README or in an issue, where somebody sees it."""
    ours = {path: text for path, text in texts.items() if "generated" not in path.parts}
    assert not (found := _lines_with(UNFINISHED, ours)), "\n".join(found)


def _configured_hosts() -> set[str]:
    commands = [["npm", "config", "get", "registry"], ["go", "env", "GOPROXY"]]
    commands += [["python3", "-m", "pip", "config", "get", "global.index-url"]]
    hosts = set()
    for command in commands:
        try:
            output = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout
        except FileNotFoundError:
            continue
        hosts |= {urlsplit(url).hostname or "" for url in re.split(r"[\s,|]+", output) if "://" in url}
    return hosts - {""}
