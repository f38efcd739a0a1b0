"""Members of an organization."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from quorate_api.http.schemas import Input, Output

Role = Literal["owner", "admin", "developer", "billing", "viewer"]


class Member(Output):
    user_id: UUID
    email: str
    role: Role
    joined_at: datetime
    is_you: bool


class Members(Output):
    items: list[Member]


class NewRole(Input):
    role: Role
