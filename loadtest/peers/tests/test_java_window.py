"""The window of the Java clients, by its own test, if a JDK is installed and a Java peer was built."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from quorate_peers.cluster import BUILD

JAVA = Path(__file__).parents[1] / "java"
HISTOGRAM = sorted(BUILD.glob("*/lib/HdrHistogram-*.jar"))


@pytest.mark.skipif(
    not HISTOGRAM or shutil.which("javac") is None, reason="needs a JDK, and `make bench-peers` to have fetched a peer"
)
def test_the_events_of_the_window(tmp_path: Path) -> None:
    path = f"{tmp_path}:{HISTOGRAM[0]}"
    sources = [JAVA / "window" / "Window.java", JAVA / "tests" / "WindowTest.java"]
    subprocess.run(["javac", "-cp", path, "-d", tmp_path, *sources], check=True, timeout=50)
    done = subprocess.run(["java", "-cp", path, "WindowTest"], capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout == "ok\n", done.stderr
