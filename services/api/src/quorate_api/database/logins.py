"""The logins of the processes: they own nothing, and may act as `quorate_api` and `quorate_worker`.

A managed PostgreSQL gives no superuser away. Its owner may create roles, and grants these two to the user of
`DATABASE_URL`.
"""

from collections.abc import Sequence

import psycopg
from psycopg import Connection, sql
from sqlalchemy import make_url

from quorate_api.database.engine import API_ROLE, WORKER_ROLE

ROLES = (API_ROLE, WORKER_ROLE)
LOCK = 0x6C6F67696E73  # "logins"


class LoginRefused(Exception):
    """The owner may not make the login, or the URL lacks something. The message says what to do."""


def ensure(owner_url: str, database_url: str) -> None:
    """Let the user of `database_url` act as the processes' roles. Another user than the owner is created where absent,
    with the URL's password, which is set anew each time."""
    owner, login = make_url(owner_url), make_url(database_url)
    plain = owner.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=False) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))  # several machines start at once
        name = login.username or connection.info.user
        if name != connection.info.user:
            _create(connection, name, login.password)
        try:
            _grant(connection, name)
        except psycopg.errors.InsufficientPrivilege as error:
            raise LoginRefused(
                f"{connection.info.user} may not grant {' and '.join(ROLES)}: {error.diag.message_primary}."
                f' Let the user that created these roles run: GRANT {", ".join(ROLES)} TO "{name}";'
            ) from None


def _create(connection: Connection, name: str, password: str | None) -> None:
    known = connection.execute("SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
    if known is not None and any(known):
        return  # somebody's administrator: its password is not ours
    if password is None and known is None:
        raise LoginRefused(f"DATABASE_URL names the user {name} without a password, and there is no such user.")
    verb = sql.SQL("CREATE" if known is None else "ALTER")
    statement = sql.SQL("{} ROLE {} LOGIN NOINHERIT").format(verb, sql.Identifier(name))
    if password is not None:
        # A verifier, so that no log of statements has the password.
        verifier = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256")
        statement += sql.SQL(" PASSWORD {}").format(sql.Literal(verifier.decode()))
    connection.execute(statement)


def _grant(connection: Connection, name: str) -> None:
    if _is_superuser(connection, name):
        return
    missing = [role for role in ROLES if not _may_act_as(connection, name, role)]
    if missing:
        connection.execute(_grant_of(missing, name))


def _is_superuser(connection: Connection, name: str) -> bool:
    found = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
    return found is not None and bool(found[0])


def _may_act_as(connection: Connection, name: str, role: str) -> bool:
    # From version 16 on membership alone is not enough: its creator is a member that may not SET ROLE.
    privilege = "SET" if connection.info.server_version >= 160_000 else "MEMBER"
    found = connection.execute("SELECT pg_has_role(%s, %s, %s)", (name, role, privilege)).fetchone()
    return found is not None and bool(found[0])


def _grant_of(roles: Sequence[str], name: str) -> sql.Composed:
    names = sql.SQL(", ").join(sql.Identifier(role) for role in roles)
    return sql.SQL("GRANT {} TO {}").format(names, sql.Identifier(name))
