"""An organization that is suspended or closing changes nothing but what its end, its debts and its people need."""

from typing import Literal

from quorate_api.errors import Code, Problem

Standing = Literal["active", "suspended", "closing", "closed"]

OF_PEOPLE = frozenset(
    {
        "log_out", "switch_organization", "confirm_person", "send_verification", "verify_email", "change_password",
        "end_session", "end_other_sessions", "begin_totp", "confirm_totp", "remove_totp", "renew_recovery_codes",
        "begin_passkey", "add_passkey", "remove_passkey", "begin_identity", "add_identity", "remove_identity",
        "accept_invitation",
    }
)  # fmt: skip
OF_THE_END = frozenset({"close_organization", "reopen_organization", "check_out"})
TO_BE_SAFE = frozenset({"revoke_key", "remove_member", "withdraw_invitation", "delete_webhook", "delete_group"})
ALLOWED = OF_PEOPLE | OF_THE_END | TO_BE_SAFE

_WHY: dict[Standing, str] = {
    "suspended": "The organization is suspended by the operators of this service; `GET /v1/organization` says why.",
    "closing": "The organization is closing. An owner can reopen it until `closes_at` of `GET /v1/organization`.",
    "closed": "The organization is closed.",
}


def require_active(standing: Standing, operation: str) -> None:
    """Raises `organization_inactive` for a change that is not possible now."""
    if standing == "active" or operation in ALLOWED:
        return
    raise Problem(Code.ORGANIZATION_INACTIVE, _WHY[standing])
