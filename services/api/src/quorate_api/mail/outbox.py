"""Mail is written in the transaction of what it is about, and the worker sends it: both happen, or neither."""

from datetime import UTC, datetime

import structlog

from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.http.services import Services
from quorate_api.mail.message import Mail
from quorate_api.mail.repository import MailRepository
from quorate_api.security.keys import Keys

log = structlog.get_logger(__name__)
PURPOSE = "mail"


def require_mail(services: Services) -> None:
    """Raises `mail_off`."""
    if not services.settings.sends_mail:
        raise Problem(Code.MAIL_OFF)


async def post(work: Work, services: Services, mail: Mail) -> None:
    """The content is sealed until it is sent: links in it open accounts. Without mail nothing is written."""
    if not services.settings.sends_mail:
        log.info("no mail is sent", subject=mail.subject)
        return
    mail_id = new_id()
    sealed = services.keys.seal(PURPOSE, mail_id.bytes, mail.to_json())
    await MailRepository(work.connection).add(mail_id, sealed, datetime.now(UTC))


def opened(keys: Keys, mail_id: bytes, sealed: bytes) -> Mail:
    return Mail.from_json(keys.open(PURPOSE, mail_id, sealed))
