"""The group of Quorate's own that keeps copies of audit logs, reached as any customer's group is: with a key."""

from dataclasses import dataclass

import quorate
from quorate.errors import QuorateError

from quorate_api.settings import ConfigurationError, Settings, read_private

AWAY = (QuorateError, OSError, TimeoutError)


@dataclass(frozen=True, slots=True)
class AuditGroup:
    api_url: str
    api_key: str
    group_id: str

    @classmethod
    def configured(cls, settings: Settings) -> "AuditGroup | None":
        if settings.audit_group_id is None:
            return None
        if settings.audit_key_file is None:
            raise ConfigurationError(
                "QUORATE_AUDIT_GROUP_ID needs QUORATE_AUDIT_KEY_FILE: a file with an API key for that group."
            )
        key = read_private("QUORATE_AUDIT_KEY_FILE", settings.audit_key_file)
        return cls(settings.audit_api_url or settings.origin, key, str(settings.audit_group_id))

    async def connect(self, *, read_only: bool = False) -> quorate.Client:
        return await quorate.connect_group(self.api_url, self.api_key, self.group_id, read_only=read_only)
