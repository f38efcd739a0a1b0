"""The port to mail: a folder of files for one machine, or an SMTP server."""

import asyncio
import secrets
import smtplib
import ssl
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import default
from email.utils import format_datetime, make_msgid
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from quorate_api import limits
from quorate_api.mail.message import Mail
from quorate_api.settings import Settings

LINKS_WHOLE = default.clone(max_line_length=998)  # RFC 5322 allows it; a shorter bound breaks links into two lines
PORTS = {"smtp": 587, "smtps": 465}


class MailRefused(Exception):
    """The server does not take this mail, now or ever. The text has no content of it."""

    def __init__(self, text: str, *, is_final: bool) -> None:
        super().__init__(text)
        self.is_final = is_final


class Sender(Protocol):
    async def send(self, mail: Mail) -> None:
        """Raises `MailRefused`, and `OSError` where no server answers."""


class Folder:
    """A file for each mail, which its recipient may open: for one machine and for trials."""

    def __init__(self, folder: Path, sender: str) -> None:
        self._folder = folder
        self._sender = sender

    async def send(self, mail: Mail) -> None:
        await asyncio.to_thread(self._write, _composed(mail, self._sender))

    def _write(self, message: EmailMessage) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{secrets.token_hex(4)}.eml"  # several may be sent at once
        draft = self._folder / f".{name}"
        draft.write_bytes(bytes(message))
        draft.chmod(0o600)
        draft.rename(self._folder / name)


class Smtp:
    """TLS from the start (`smtps`), or by STARTTLS (`smtp`); plaintext only to this machine, where nobody listens."""

    def __init__(self, url: str, sender: str, user: str | None, password: str | None) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._scheme = parts.scheme
        self._port = parts.port or PORTS[parts.scheme]
        self._sender = sender
        self._user = user
        self._password = password

    async def send(self, mail: Mail) -> None:
        await asyncio.to_thread(self._deliver, _composed(mail, self._sender))

    def _deliver(self, message: EmailMessage) -> None:
        try:
            with self._connected() as server:
                if self._user is not None:
                    server.login(self._user, self._password or "")
                server.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            codes = {code for code, _ in error.recipients.values()}
            raise MailRefused(f"the recipient is refused: {codes}", is_final=min(codes) >= 500) from None
        except smtplib.SMTPResponseException as error:
            raise MailRefused(f"{type(error).__name__}: {error.smtp_code}", is_final=False) from None
        except smtplib.SMTPException as error:
            raise MailRefused(type(error).__name__, is_final=False) from None

    def _connected(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self._scheme == "smtps":
            return smtplib.SMTP_SSL(self._host, self._port, timeout=limits.MAIL_TIMEOUT_S, context=context)
        server = smtplib.SMTP(self._host, self._port, timeout=limits.MAIL_TIMEOUT_S)
        server.ehlo()
        if server.has_extn("starttls"):
            server.starttls(context=context)
        elif self._host not in ("localhost", "127.0.0.1", "::1"):
            server.close()
            raise MailRefused("the server offers no STARTTLS", is_final=False)
        return server


def configured(settings: Settings) -> Sender | None:
    """None: this service sends no mail."""
    if settings.mail == "folder":
        assert settings.mail_dir is not None, "settings were checked"
        return Folder(settings.mail_dir, settings.mail_from)
    if settings.mail == "smtp":
        assert settings.smtp_url is not None, "settings were checked"
        return Smtp(settings.smtp_url, settings.mail_from, settings.smtp_user, settings.smtp_password())
    return None


def _composed(mail: Mail, sender: str) -> EmailMessage:
    message = EmailMessage(LINKS_WHOLE)
    message["From"] = sender
    message["To"] = mail.to
    message["Subject"] = mail.subject
    message["Date"] = format_datetime(datetime.now(UTC))
    message["Message-ID"] = make_msgid(domain="quorate")
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    return message
