"""Mail of a service under test: sent into a folder by the worker's own code, and read from there."""

import email
import re
from email.policy import default
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.http.services import Services
from quorate_api.mail import senders
from quorate_api.worker.mails import Postman


class Mailbox:
    def __init__(self, folder: Path, services: Services, engine: AsyncEngine) -> None:
        services.settings = services.settings.model_copy(update={"mail": "folder", "mail_dir": folder})
        sender = senders.configured(services.settings)
        assert sender is not None
        self._postman = Postman(engine, services.keys, sender)
        self._folder = folder

    async def fetch(self, to: str) -> list[tuple[str, str]]:
        """Subjects and texts of all mail to the address, oldest first."""
        await self._postman.run()
        files = sorted(self._folder.glob("*.eml"))
        found = [email.message_from_bytes(path.read_bytes(), policy=default) for path in files]
        return [(str(mail["Subject"]), mail.get_content()) for mail in found if mail["To"] == to]

    async def link(self, to: str) -> str:
        """The secret of the link in the latest mail to the address."""
        _, text = (await self.fetch(to))[-1]
        (secret,) = re.findall(r"#([\w-]+)\s", text)
        return str(secret)
