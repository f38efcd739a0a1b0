"""Events as the API lists them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from quorate_api.events.catalogue import EventType
from quorate_api.http.schemas import Output


class ListedEvent(Output):
    id: str = Field(description="As the header `webhook-id` of its deliveries: process each id once.")
    type: EventType
    timestamp: datetime
    data: dict[str, Any] = Field(description="As the type describes it (docs/reference/events.md).")
