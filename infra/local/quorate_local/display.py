"""Progress for people: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

PLAIN_INTERVAL_S = 15.0  # between lines of progress without a terminal
LIVE_INTERVAL_S = 0.1


class Display:
    """Writes lines and at most one line of live progress below them. Threads may share it."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self._live = self._stream.isatty()
        self._quiet = quiet
        self._shown = ""
        self._last_progress_s = 0.0
        self._lock = threading.RLock()

    def line(self, text: str = "") -> None:
        """A line that stays."""
        if self._quiet:
            return
        with self._lock:
            self._clear()
            print(text, file=self._stream, flush=True)

    def progress(self, text: str) -> None:
        """A line that the next one replaces; without a terminal, a line at intervals."""
        with self._lock:
            now_s = time.monotonic()
            interval_s = LIVE_INTERVAL_S if self._live else PLAIN_INTERVAL_S
            if self._quiet or now_s - self._last_progress_s < interval_s:
                return
            self._last_progress_s = now_s
            if not self._live:
                print(text, file=self._stream, flush=True)
                return
            self._clear()
            self._shown = text
            self._stream.write(text)
            self._stream.flush()

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Shows `text` during the work; the next line replaces it."""
        self._last_progress_s = 0.0 if self._live else time.monotonic()
        self.progress(f"  {text} …")
        try:
            yield
        finally:
            self._clear()

    def _clear(self) -> None:
        if self._live and self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._shown = ""
