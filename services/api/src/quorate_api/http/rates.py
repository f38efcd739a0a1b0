"""Rate limits in one process's memory, so that they hold without Redis. n processes allow n times as much."""

import math
import time
from dataclasses import dataclass

from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import FixedWindowRateLimiter

from quorate_api import limits
from quorate_api.errors import Code, Problem


@dataclass(frozen=True, slots=True)
class Standing:
    """A caller's use of one limit."""

    allowed: bool
    limit: int
    window_s: int
    remaining: int
    reset_s: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Policy": f'"default";q={self.limit};w={self.window_s}',
            "RateLimit": f'"default";r={self.remaining};t={self.reset_s}',
        }


class Rates:
    def __init__(self, signups_per_address: str = limits.SIGNUPS_PER_ADDRESS) -> None:
        self._limiter = FixedWindowRateLimiter(MemoryStorage())
        self._requests = parse(limits.REQUESTS_PER_PRINCIPAL)
        self._signups = parse(signups_per_address)
        self._new_keys = parse(limits.NEW_KEYS_PER_ORGANIZATION)
        self._status = parse(limits.STATUS_PER_ADDRESS)
        self._account_failures = parse(limits.LOGIN_FAILURES_PER_ACCOUNT)
        self._address_failures = parse(limits.LOGIN_FAILURES_PER_ADDRESS)

    async def request(self, principal: str) -> Standing:
        return await self._hit(self._requests, "request", principal)

    async def signup(self, address: str) -> None:
        _raise_unless(await self._hit(self._signups, "signup", address), "Too many sign-ups from this address.")

    async def new_key(self, organization: str) -> None:
        _raise_unless(await self._hit(self._new_keys, "new key", organization), "Too many new API keys.")

    async def status(self, address: str) -> Standing:
        standing = await self._hit(self._status, "status", address)
        _raise_unless(standing, "Too many requests from this address.")
        return standing

    async def before_login(self, email: str, address: str) -> None:
        for item, what in ((self._account_failures, email), (self._address_failures, address)):
            if not await self._limiter.test(item, "login", what):
                standing = await self._standing(item, "login", what, allowed=False)
                _raise_unless(standing, "Too many failed logins.")

    async def failed_login(self, email: str, address: str) -> None:
        await self._limiter.hit(self._account_failures, "login", email)
        await self._limiter.hit(self._address_failures, "login", address)

    async def _hit(self, item: RateLimitItem, *what: str) -> Standing:
        allowed = await self._limiter.hit(item, *what)
        return await self._standing(item, *what, allowed=allowed)

    async def _standing(self, item: RateLimitItem, *what: str, allowed: bool) -> Standing:
        stats = await self._limiter.get_window_stats(item, *what)
        reset_s = max(1, math.ceil(stats.reset_time - time.time()))
        return Standing(allowed, item.amount, item.get_expiry(), max(0, stats.remaining), reset_s)


def _raise_unless(standing: Standing, sentence: str) -> None:
    if not standing.allowed:
        raise Problem(
            Code.RATE_LIMITED, f"{sentence} Try again in {standing.reset_s} s.", retry_after_s=standing.reset_s
        )
