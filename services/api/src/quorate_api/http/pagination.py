"""Signed cursors over time-ordered ids: opaque to clients, of no use on another list or for another caller."""

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Query, Request

from quorate_api import limits
from quorate_api.errors import Code, Problem
from quorate_api.http.principal import current_principal
from quorate_api.http.services import services_of
from quorate_api.security.keys import Keys, same

MAC_BYTES = 16


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

    def next_cursor(self, position: bytes) -> str:
        mac = self.keys.mac("cursor", self.context, position)[:MAC_BYTES]
        return base64.urlsafe_b64encode(position + mac).decode().rstrip("=")


def _paging(
    request: Request,
    limit: Annotated[
        int, Query(ge=1, le=limits.PAGE_LIMIT_MAX, description="Items per page.")
    ] = limits.PAGE_LIMIT_DEFAULT,
    cursor: Annotated[str | None, Query(max_length=200, description="`next_cursor` of the previous page.")] = None,
) -> Paging:
    keys = services_of(request).keys
    organization = current_principal(request).organization_id
    context = organization.bytes + request.url.path.encode()
    if cursor is None:
        return Paging(limit, None, keys, context)
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise Problem(Code.CURSOR_INVALID) from None
    position, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
    if len(position) != 16 or not same(mac, keys.mac("cursor", context, position)[:MAC_BYTES]):
        raise Problem(Code.CURSOR_INVALID)
    return Paging(limit, position, keys, context)


PageParameters = Annotated[Paging, Depends(_paging)]
