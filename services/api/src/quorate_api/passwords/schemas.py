"""Passwords, and links that set a new one."""

from quorate_api.http.schemas import Input
from quorate_api.users.schemas import Email, LinkSecret, NewPassword, Password


class ResetRequest(Input):
    email: Email


class Reset(Input):
    token: LinkSecret
    password: NewPassword


class Change(Input):
    password: Password
    new_password: NewPassword
