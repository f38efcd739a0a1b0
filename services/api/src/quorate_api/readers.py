"""Everybody who reads entries over this process: each has a connection to a server, so they are bounded."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from quorate_api import limits
from quorate_api.errors import Code, Problem


class Readers:
    def __init__(self) -> None:
        self._of: Counter[UUID] = Counter()

    @contextmanager
    def enter(self, organization_id: UUID) -> Iterator[None]:
        """Raises `overloaded`, and `rate_limited` where the organization has enough."""
        if self._of[organization_id] >= limits.ENTRIES_READERS_PER_ORGANIZATION_MAX:
            raise Problem(Code.RATE_LIMITED, "Your organization reads entries in too many places.", retry_after_s=2)
        if self._of.total() >= limits.ENTRIES_READERS_MAX:
            raise Problem(Code.OVERLOADED, "Too many people read entries now.", retry_after_s=2)
        self._of[organization_id] += 1
        try:
            yield
        finally:
            self._of[organization_id] -= 1
            if not self._of[organization_id]:
                del self._of[organization_id]
