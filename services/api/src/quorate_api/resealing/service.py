"""The command `secret-reseal`: seal under the present secret what the former one has sealed."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.database.scope import EveryOrganization
from quorate_api.factors import service as factors
from quorate_api.mail import outbox
from quorate_api.resealing.repository import SealedRepository
from quorate_api.security.keys import Keys
from quorate_api.webhooks import secrets as webhooks

REASON = "what is sealed of all organizations is sealed anew alike"
SEALED = {"totps": factors.PURPOSE, "webhook_secrets": webhooks.PURPOSE, "mails": outbox.PURPOSE}


@dataclass(frozen=True, slots=True)
class Resealed:
    rows: int
    keys_left: int  # API keys that nobody has used since


async def reseal(engine: AsyncEngine, keys: Keys) -> Resealed:
    """Repeating it seals what is left. Run it by the tables' owner."""
    rows = 0
    async with engine.connect() as connection:
        repository = SealedRepository(EveryOrganization(connection, REASON))
        for table, purpose in SEALED.items():
            async for some in repository.rows(table):
                for key, sealed in some:
                    again = keys.resealed(purpose, key.bytes, sealed)
                    if again is not None:
                        rows += await repository.replace(table, key, sealed, again)
                await connection.commit()
        return Resealed(rows, await repository.keys_under_others(keys.id))
