"""Verification of a person's e-mail address."""

from quorate_api.http.schemas import Input
from quorate_api.users.schemas import LinkSecret


class Verification(Input):
    token: LinkSecret
