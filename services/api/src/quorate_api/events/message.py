"""An event as it is sent and shown. Pure."""

import json
from typing import Any
from uuid import UUID

from sqlalchemy import Row


def message_id(event_id: UUID) -> str:
    return f"msg_{event_id.hex}"


def body_of(event: Row[Any]) -> str:
    """The body of each delivery of the event: the same bytes each time, for the signature covers them."""
    message = {"type": event.type, "timestamp": event.at.isoformat(), "data": event.data}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))
