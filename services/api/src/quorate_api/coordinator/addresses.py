"""The coordinators' addresses, and the one to call. One of them leads; the others name it."""

from collections.abc import Sequence
from urllib.parse import urlsplit


class Addresses:
    """`urls`: as the operator gave them, at least one. No other address is called: it would get the token."""

    def __init__(self, urls: Sequence[str]) -> None:
        if not urls:
            raise ValueError("there must be a coordinator")
        self._urls = list(urls)
        self._at = 0

    def __len__(self) -> int:
        return len(self._urls)

    @property
    def current(self) -> str:
        return self._urls[self._at]

    def failed(self, url: str) -> None:
        """It is away, or does not lead. Another call may have noticed it before."""
        if url == self.current:
            self._at = (self._at + 1) % len(self._urls)

    def told(self, url: str, leader: str | None) -> None:
        """It names the leader: host and port, or nobody."""
        for at, known in enumerate(self._urls):
            if leader is not None and known != url and urlsplit(known).netloc == leader:
                self._at = at
                return
        self.failed(url)
