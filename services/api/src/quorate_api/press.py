"""Documents are made in threads, one at a time: the largest takes seconds of a core, which requests need too."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

import anyio.to_thread

from quorate_api import limits
from quorate_api.errors import Code, Problem

Content = TypeVar("Content")


class Press:
    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(limits.DOCUMENTS_AT_ONCE)
        self._of_organizations: Counter[UUID] = Counter()

    @property
    def waiting(self) -> int:
        """Documents that are asked for and not done."""
        return self._of_organizations.total()

    async def make(self, organization_id: UUID, render: Callable[[Content], bytes], content: Content) -> bytes:
        """The document's bytes. The caller holds no connection meanwhile."""
        if self._of_organizations[organization_id] >= limits.DOCUMENTS_PER_ORGANIZATION_MAX:
            raise Problem(
                Code.RATE_LIMITED,
                f"{limits.DOCUMENTS_PER_ORGANIZATION_MAX} documents of your organization are being made. "
                "Wait for one of them, then repeat the request.",
                retry_after_s=5,
            )
        if self.waiting >= limits.DOCUMENTS_WAITING_MAX:
            raise Problem(Code.OVERLOADED, retry_after_s=10)
        self._of_organizations[organization_id] += 1
        try:
            async with self._slots:
                return await anyio.to_thread.run_sync(render, content)
        finally:
            self._of_organizations[organization_id] -= 1
            if not self._of_organizations[organization_id]:
                del self._of_organizations[organization_id]
