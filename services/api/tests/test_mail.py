"""Mail: sealed until it is sent, sent once, tried again, given up; over a real SMTP server, too."""

import asyncio
import smtplib
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from aiosmtpd.controller import Controller
from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.http.services import Services
from quorate_api.mail import outbox, senders
from quorate_api.mail.message import Mail
from quorate_api.mail.senders import MailRefused, Smtp
from quorate_api.settings import Settings
from quorate_api.worker.mails import Postman

MAIL = Mail("alice@example.com", "Grüße", "A secret: s3cr3t.\n")


class Inbox:
    """A real SMTP server's mail, and its answer to recipients."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.refuses = ""

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:
        if self.refuses:
            return self.refuses
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        self.mails.append(envelope)
        return "250 OK"


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def smtp(inbox: Inbox) -> Iterator[Smtp]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(inbox, hostname="127.0.0.1", port=port)
    controller.start()
    yield Smtp(f"smtp://127.0.0.1:{port}", "Quorate <noreply@example.com>", None, None)
    controller.stop()


async def post(services: Services) -> None:
    services.settings = services.settings.model_copy(update={"mail": "smtp"})
    async with Work(services.engine) as work:
        await outbox.post(work, services, MAIL)


async def test_mail_is_sealed_and_then_sent_once(
    services: Services, worker_engine: AsyncEngine, owner: psycopg.Connection, smtp: Smtp, inbox: Inbox
) -> None:
    await post(services)
    stored = owner.execute("SELECT sealed FROM mails").fetchone()
    assert stored is not None
    assert b"s3cr3t" not in stored[0]
    assert b"alice" not in stored[0]
    postmen = [Postman(worker_engine, services.keys, smtp) for _ in range(3)]
    assert sum(await asyncio.gather(*(postman.run() for postman in postmen))) == 1
    (mail,) = inbox.mails
    assert mail.rcpt_tos == [MAIL.to]
    assert b"s3cr3t" in mail.content
    assert owner.execute("SELECT count(*) FROM mails").fetchone() == (0,)


async def test_mail_is_tried_again_and_given_up_after_a_day(
    services: Services, worker_engine: AsyncEngine, owner: psycopg.Connection, smtp: Smtp, inbox: Inbox
) -> None:
    await post(services)
    postman = Postman(worker_engine, services.keys, smtp)
    inbox.refuses = "451 later"
    assert await postman.run() == 0
    assert await postman.run() == 0, "not before its pause is over"
    row = owner.execute("SELECT attempts, next_at > now() + interval '20 seconds' FROM mails").fetchone()
    assert row == (1, True)
    inbox.refuses = ""
    owner.execute("UPDATE mails SET next_at = now()")
    assert await postman.run() == 1
    await post(services)
    inbox.refuses = "451 later"
    owner.execute("UPDATE mails SET created_at = %s", (datetime.now(UTC) - timedelta(seconds=limits.MAIL_LIFE_S + 1),))
    assert await postman.run() == 0
    assert owner.execute("SELECT count(*) FROM mails").fetchone() == (0,)


async def test_a_recipient_that_does_not_exist_is_final(
    services: Services, worker_engine: AsyncEngine, owner: psycopg.Connection, smtp: Smtp, inbox: Inbox
) -> None:
    await post(services)
    inbox.refuses = "550 no such user"
    assert await Postman(worker_engine, services.keys, smtp).run() == 0
    assert owner.execute("SELECT count(*) FROM mails").fetchone() == (0,)


async def test_no_server_is_an_outage() -> None:
    with pytest.raises(OSError, match=r"."):
        await Smtp("smtp://127.0.0.1:1", "q@example.com", None, None).send(MAIL)


async def test_passwords_go_over_tls_alone(monkeypatch: pytest.MonkeyPatch, smtp: Smtp) -> None:
    """A server elsewhere that offers no STARTTLS gets nothing."""
    port = smtp._port
    monkeypatch.setattr(smtplib.SMTP, "_get_socket", lambda self, _host, _port, timeout: _loopback(port, timeout))
    with pytest.raises(MailRefused, match="STARTTLS"):
        await Smtp("smtp://mail.example.com:25", "q@example.com", "user", "password").send(MAIL)


def _loopback(port: int, timeout: float) -> Any:
    return socket.create_connection(("127.0.0.1", port), timeout)


async def test_smtps_checks_the_certificate() -> None:
    with pytest.raises((OSError, ssl.SSLError)):
        await Smtp("smtps://127.0.0.1:1", "q@example.com", None, None).send(MAIL)


async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    await senders.Folder(folder, "q@example.com").send(MAIL)
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0
    assert "s3cr3t" in path.read_text()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"mail": "folder"}, "QUORATE_MAIL_DIR"),
        ({"mail": "smtp"}, "QUORATE_SMTP_URL"),
        ({"mail": "smtp", "smtp_url": "http://x"}, "QUORATE_SMTP_URL"),
        ({"smtp_user": "me"}, "QUORATE_SMTP_PASSWORD_FILE"),
    ],
)
def test_bad_settings_are_named(settings: Settings, changed: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Settings(**(settings.model_dump() | changed))


async def test_no_line_break_gets_into_a_header(tmp_path: Path) -> None:
    mail = Mail("alice@example.com", "Hello\nBcc: everybody@example.com", "text")
    with pytest.raises(ValueError, match=r"linefeed|newline"):
        await senders.Folder(tmp_path, "Quorate <noreply@example.com>").send(mail)
