"""argon2id in threads, a few at a time: each hash takes 64 MiB and half a second, so a flood could exhaust both."""

import asyncio

import anyio.to_thread
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from quorate_api import limits
from quorate_api.errors import Code, Problem


class Passwords:
    def __init__(self, memory_kib: int) -> None:
        self._hash = PasswordHash((Argon2Hasher(memory_cost=memory_kib),))
        self._slots = asyncio.Semaphore(limits.PASSWORD_HASHES_AT_ONCE)
        self._waiting = 0
        self._dummy: str | None = None

    async def hash(self, password: str) -> str:
        return await self._run(self._hash.hash, password)

    async def verify(self, password: str, stored: str | None) -> bool:
        """Takes as long for an account that does not exist (`stored` None) as for one that does."""
        if stored is None:
            if self._dummy is None:
                self._dummy = await self.hash("no such account")
            await self._run(self._hash.verify, password, self._dummy)
            return False
        return bool(await self._run(self._hash.verify, password, stored))

    async def _run(self, function: object, *arguments: str) -> str:
        if self._waiting >= limits.PASSWORD_HASHES_WAITING_MAX:
            raise Problem(Code.OVERLOADED, retry_after_s=5)
        self._waiting += 1
        try:
            async with self._slots:
                return await anyio.to_thread.run_sync(function, *arguments)  # type: ignore[arg-type]
        finally:
            self._waiting -= 1
