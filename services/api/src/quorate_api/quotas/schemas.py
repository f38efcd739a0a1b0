"""Quotas with their use."""

from quorate_api.http.schemas import Output


class Quota(Output):
    code: str
    description: str
    limit: int
    used: int
    unit: str


class Quotas(Output):
    items: list[Quota]
