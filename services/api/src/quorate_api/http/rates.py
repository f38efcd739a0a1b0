"""Rate limits of all API processes together, in Redis. While Redis is away each process counts alone."""

import math
import time
from dataclasses import dataclass

import structlog
from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.errors import StorageError
from redis.asyncio import ConnectionPool
from redis.exceptions import RedisError

from quorate_api import limits
from quorate_api.errors import Code, Problem

log = structlog.get_logger(__name__)


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
    """Close it with `aclose`."""

    def __init__(self, signups_per_address: str = limits.SIGNUPS_PER_ADDRESS, redis_url: str | None = None) -> None:
        self._counter = Counter(redis_url)
        self._signups = parse(signups_per_address)

    async def aclose(self) -> None:
        await self._counter.aclose()

    async def request(self, principal: str) -> Standing:
        return await self._counter.hit(_REQUESTS, "request", principal)

    async def signup(self, address: str) -> None:
        await self._spend(self._signups, "Too many sign-ups from this address.", "signup", address)

    async def new_key(self, organization: str) -> None:
        await self._spend(_NEW_KEYS, "Too many new API keys.", "new key", organization)

    async def switch(self, user: str) -> None:
        await self._spend(_SWITCHES, "Too many changes of the organization.", "switch", user)

    async def invitation(self, organization: str) -> None:
        await self._spend(_INVITATIONS, "Too many invitations.", "invitation", organization)

    async def mail_request(self, address: str) -> None:
        await self._spend(_MAIL_REQUESTS, "Too many requests of mail from this address.", "mail request", address)

    async def link(self, address: str) -> None:
        """Somebody opens a link that was mailed."""
        await self._spend(_ADDRESS_FAILURES, "Too many attempts from this address.", "link", address)

    async def wrong_passkey(self, address: str) -> None:
        await self._spend(_ADDRESS_FAILURES, "Too many failed logins.", "passkey", address)

    async def identity(self, address: str) -> None:
        """Somebody has come back from an identity provider, or says so."""
        await self._spend(_ADDRESS_FAILURES, "Too many attempts from this address.", "identity", address)

    async def may_mail(self, recipient: str) -> bool:
        return (await self._counter.hit(_MAILS, "mail", recipient)).allowed

    async def mail_to(self, recipient: str) -> None:
        await self._spend(_MAILS, "Too much mail to this address.", "mail", recipient)

    async def webhook_test(self, organization_id: str) -> None:
        await self._spend(_WEBHOOK_TESTS, "Too many tests of webhooks.", "webhook test", organization_id)

    async def status(self, address: str) -> Standing:
        return await self._spend(_STATUS, "Too many requests from this address.", "status", address)

    async def before_login(self, email: str, address: str, device: str | None) -> None:
        """Raises `rate_limited` after too many failures. `device`: a known one, which no failure elsewhere hinders."""
        for item, what in _login(email, address, device):
            standing = await self._counter.look(item, *what)
            _raise_unless(standing, "Too many failed logins.")

    async def failed_login(self, email: str, address: str, device: str | None) -> None:
        log.warning("a login failed", address=address, known_device=device is not None)
        for item, what in _login(email, address, device):
            await self._counter.hit(item, *what)

    async def before_key(self, address: str) -> None:
        _raise_unless(await self._counter.look(_INVALID_KEYS, "key", address), "Too many invalid API keys.")

    async def invalid_key(self, address: str) -> None:
        await self._counter.hit(_INVALID_KEYS, "key", address)

    async def _spend(self, item: RateLimitItem, sentence: str, *what: str) -> Standing:
        standing = await self._counter.hit(item, *what)
        _raise_unless(standing, sentence)
        return standing


class Counter:
    """Counts in Redis; in the memory of this process without it, and for a while after it has failed."""

    def __init__(self, redis_url: str | None) -> None:
        self._alone = FixedWindowRateLimiter(MemoryStorage())
        self._pool = (
            None
            if redis_url is None
            else ConnectionPool.from_url(
                redis_url, socket_connect_timeout=limits.RATES_REDIS_S, socket_timeout=limits.RATES_REDIS_S
            )
        )
        self._shared = None if redis_url is None else FixedWindowRateLimiter(_storage(redis_url, self._pool))
        self._alone_until = 0.0

    async def aclose(self) -> None:
        if self._pool is not None:
            await self._pool.disconnect()

    async def hit(self, item: RateLimitItem, *what: str) -> Standing:
        """Counts once more."""
        if (shared := self._present()) is not None:
            try:
                return await _standing(shared, item, *what, allowed=await shared.hit(item, *what))
            except (RedisError, StorageError, OSError) as error:
                self._failed(error)
        return await _standing(self._alone, item, *what, allowed=await self._alone.hit(item, *what))

    async def look(self, item: RateLimitItem, *what: str) -> Standing:
        """Whether one more would be allowed; counts nothing."""
        if (shared := self._present()) is not None:
            try:
                return await _standing(shared, item, *what, allowed=await shared.test(item, *what))
            except (RedisError, StorageError, OSError) as error:
                self._failed(error)
        return await _standing(self._alone, item, *what, allowed=await self._alone.test(item, *what))

    def _present(self) -> FixedWindowRateLimiter | None:
        return None if time.monotonic() < self._alone_until else self._shared

    def _failed(self, error: Exception) -> None:
        self._alone_until = time.monotonic() + limits.RATES_ALONE_S
        log.warning("rate limits are of this process alone for a while", error=str(error) or type(error).__name__)


_REQUESTS = parse(limits.REQUESTS_PER_PRINCIPAL)
_NEW_KEYS = parse(limits.NEW_KEYS_PER_ORGANIZATION)
_SWITCHES = parse(limits.SESSION_SWITCHES_PER_PERSON)
_INVITATIONS = parse(limits.INVITATIONS_PER_ORGANIZATION)
_MAIL_REQUESTS = parse(limits.MAIL_REQUESTS_PER_ADDRESS)
_WEBHOOK_TESTS = parse(limits.WEBHOOK_TESTS_PER_ORGANIZATION)
_MAILS = parse(limits.MAILS_PER_RECIPIENT)
_STATUS = parse(limits.STATUS_PER_ADDRESS)
_PAIR_FAILURES = parse(limits.LOGIN_FAILURES_PER_PAIR)
_ADDRESS_FAILURES = parse(limits.LOGIN_FAILURES_PER_ADDRESS)
_ACCOUNT_FAILURES = parse(limits.LOGIN_FAILURES_PER_ACCOUNT)
_INVALID_KEYS = parse(limits.INVALID_KEYS_PER_ADDRESS)


def _login(email: str, address: str, device: str | None) -> list[tuple[RateLimitItem, tuple[str, ...]]]:
    if device is not None:
        return [(_PAIR_FAILURES, ("login", email, f"device {device}"))]
    return [
        (_PAIR_FAILURES, ("login", email, address)),
        (_ADDRESS_FAILURES, ("login", address)),
        (_ACCOUNT_FAILURES, ("login account", email)),
    ]


def _storage(redis_url: str, pool: ConnectionPool | None) -> RedisStorage:
    address = redis_url.replace("unix:", "redis+unix:", 1) if redis_url.startswith("unix:") else redis_url
    return RedisStorage(f"async+{address}", implementation="redispy", connection_pool=pool)  # type: ignore[arg-type]


async def _standing(limiter: FixedWindowRateLimiter, item: RateLimitItem, *what: str, allowed: bool) -> Standing:
    stats = await limiter.get_window_stats(item, *what)
    reset_s = max(1, math.ceil(stats.reset_time - time.time()))
    return Standing(allowed, item.amount, item.get_expiry(), max(0, stats.remaining), reset_s)


def _raise_unless(standing: Standing, sentence: str) -> None:
    if not standing.allowed:
        raise Problem(
            Code.RATE_LIMITED, f"{sentence} Try again in {standing.reset_s} s.", retry_after_s=standing.reset_s
        )
