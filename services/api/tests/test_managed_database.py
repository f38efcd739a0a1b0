"""A managed PostgreSQL: its owner is no superuser, and the processes have a login of their own."""

import os
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from support.command import COMMAND, Process, address_of
from support.customer import PASSWORD, SLA


@dataclass
class Managed:
    """The owner may create roles and owns its database, as clouds give one. No `login` is there yet."""

    owner_url: str
    login: str

    def url(self, password: str) -> str:
        made = make_url(self.owner_url).set(username=self.login, password=password)
        return made.render_as_string(hide_password=False)


@pytest.fixture
def managed() -> Iterator[Managed]:
    number = uuid.uuid4().hex[:12]
    owner, login, database = f"owner_{number}", f"login_{number}", f"managed_{number}"
    admin_url = make_url(os.environ["TEST_TEMPLATE_URL"]).set(database="postgres").render_as_string(hide_password=False)
    with psycopg.connect(admin_url, autocommit=True) as admin:
        make = sql.SQL("CREATE ROLE {} LOGIN CREATEROLE CREATEDB NOSUPERUSER PASSWORD 'owners'")
        admin.execute(make.format(sql.Identifier(owner)))
        # As PostgreSQL 16 and later grant it to the creator of a role. Here the first test's superuser has made both.
        creators = sql.SQL("GRANT quorate_api, quorate_worker TO {} WITH ADMIN TRUE, INHERIT FALSE, SET FALSE")
        admin.execute(creators.format(sql.Identifier(owner)))
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(database), sql.Identifier(owner)))
    url = make_url(admin_url).set(username=owner, password="owners", database=database)
    yield Managed(url.render_as_string(hide_password=False), login)
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database)))
        for name in (login, owner):
            admin.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))


def migrate(environment: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "migrate"], env={**environment, **more}, capture_output=True, text=True, timeout=120, check=False
    )


def serves(environment: dict[str, str], url: str) -> None:
    """API and worker run with this login alone, to a group that is admitted."""
    own = {**environment, "DATABASE_URL": url}
    with Process(own, "api") as api, Process(own, "worker") as worker:
        worker.line("worker ready")
        with httpx2.Client(base_url=address_of(api), trust_env=False) as client:
            body = {"email": "a@example.com", "password": PASSWORD, "organization": "o"}
            signed_up = client.post("/v1/signup", json=body).json()
            client.headers["X-CSRF-Token"] = signed_up["csrf_token"]
            path = f"/v1/projects/{signed_up['project']['id']}/groups"
            assert client.post(path, json={"name": "g", **SLA}).status_code == 201
        assert (api.stop(), worker.stop()) == (0, 0)


def test_the_service_runs_by_a_login_that_owns_nothing(environment: dict[str, str], managed: Managed) -> None:
    url = managed.url("first")
    for _ in range(2):  # each machine does so at its start
        done = migrate(environment, QUORATE_OWNER_DATABASE_URL=managed.owner_url, DATABASE_URL=url)
        assert done.returncode == 0, done.stderr
    serves(environment, url)
    with psycopg.connect(url, autocommit=True) as login:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            login.execute("SELECT * FROM organizations")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            login.execute("DROP TABLE organizations")
        login.execute("SET ROLE quorate_api")
        assert login.execute("SELECT count(*) FROM organizations").fetchone() == (0,), "row-level security hides all"


def test_one_user_for_all_is_enough(environment: dict[str, str], managed: Managed) -> None:
    done = migrate(environment, DATABASE_URL=managed.owner_url)
    assert done.returncode == 0, done.stderr
    serves(environment, managed.owner_url)


def test_another_password_in_the_url_is_the_logins_next(environment: dict[str, str], managed: Managed) -> None:
    for password in ("first", "second"):
        url = managed.url(password)
        assert migrate(environment, QUORATE_OWNER_DATABASE_URL=managed.owner_url, DATABASE_URL=url).returncode == 0
        psycopg.connect(url).close()
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(managed.url("first"))


def test_a_login_without_a_password_is_not_made(environment: dict[str, str], managed: Managed) -> None:
    url = managed.url("x").replace(":x@", "@")
    done = migrate(environment, QUORATE_OWNER_DATABASE_URL=managed.owner_url, DATABASE_URL=url)
    assert done.returncode == 1
    assert f"names the user {managed.login} without a password" in done.stderr
