"""Signed cursors over time-ordered ids. They are opaque, and valid for one list and one caller."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Depends, Query, Request

from quorate_api import limits
from quorate_api.errors import Code, Problem
from quorate_api.http.principal import current_principal
from quorate_api.http.services import services_of
from quorate_api.security.keys import Keys

MAC_BYTES = 16
POSITION_BYTES = 16
Item = TypeVar("Item")
Position = UUID | int | bytes


@dataclass(frozen=True, slots=True)
class Paging:
    """`after` is the last position of the previous page: an id, or for events a number."""

    limit: int
    after: bytes | None
    keys: Keys
    context: bytes

    @property
    def after_id(self) -> UUID | None:
        return None if self.after is None else UUID(bytes=self.after)

    @property
    def after_number(self) -> int | None:
        return None if self.after is None else int.from_bytes(self.after, "big")

    def cut(
        self, rows: list[Item], position: Callable[[Any], Position] = attrgetter("id")
    ) -> tuple[list[Item], str | None]:
        """A page of the rows, and the cursor of the next one. A row beyond `limit` tells that there is one."""
        if len(rows) <= self.limit:
            return rows, None
        page = rows[: self.limit]
        return page, self._cursor(_bytes_of(position(page[-1])))

    def _cursor(self, position: bytes) -> str:
        mac = self.keys.mac("cursor", self.context, position)[:MAC_BYTES]
        return base64.urlsafe_b64encode(position + mac).decode().rstrip("=")


def _bytes_of(position: Position) -> bytes:
    if isinstance(position, UUID):
        return position.bytes
    return position.to_bytes(POSITION_BYTES, "big") if isinstance(position, int) else position


Limit = Annotated[int, Query(ge=1, le=limits.PAGE_LIMIT_MAX, description="Items per page.")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the previous page.")]


def _paging(request: Request, limit: Limit = limits.PAGE_LIMIT_DEFAULT, cursor: Cursor = None) -> Paging:
    organization = current_principal(request).organization_id
    return _page(request, organization.bytes, limit, cursor)


def _operator_paging(request: Request, limit: Limit = limits.PAGE_LIMIT_DEFAULT, cursor: Cursor = None) -> Paging:
    return _page(request, b"operator", limit, cursor)


def _page(request: Request, whose: bytes, limit: int, cursor: str | None) -> Paging:
    keys = services_of(request).keys
    context = whose + request.url.path.encode()
    if cursor is None:
        return Paging(limit, None, keys, context)
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise Problem(Code.CURSOR_INVALID) from None
    position, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
    if len(position) != POSITION_BYTES or not keys.verifies(mac, "cursor", context, position):
        raise Problem(Code.CURSOR_INVALID)
    return Paging(limit, position, keys, context)


PageParameters = Annotated[Paging, Depends(_paging)]
OperatorPageParameters = Annotated[Paging, Depends(_operator_paging)]
