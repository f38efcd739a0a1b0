"""The texts of all mail. Links have their secret behind `#`, which browsers send to no server."""

from datetime import datetime

from quorate_api.mail.message import Mail


def verify_email(to: str, origin: str, token: str) -> Mail:
    return Mail(
        to,
        "Verify your e-mail address for Quorate",
        f"Somebody signed up to Quorate with this address.\n\n"
        f"If it was you, open this link in the browser in which you are logged in:\n\n"
        f"  {origin}/verify-email#{token}\n\n"
        f"It works for a day. Until then your organization has a small quota.\n"
        f"If it was not you, nothing needs to be done.\n",
    )


def address_in_use(to: str, origin: str) -> Mail:
    """To the holder of a verified address with which somebody has signed up again."""
    return Mail(
        to,
        "You have a Quorate account already",
        f"Somebody signed up to Quorate with this address, which belongs to your account.\n\n"
        f"If it was you, log in with your former password:\n\n  {origin}/login\n\n"
        f"or set another one:\n\n  {origin}/forgot-password\n\n"
        f"If it was not you, nothing needs to be done: nobody else can use your address.\n",
    )


def reset_password(to: str, origin: str, token: str) -> Mail:
    return Mail(
        to,
        "Set a new password for Quorate",
        f"Somebody asked to set a new password for your Quorate account.\n\n"
        f"If it was you, open this link:\n\n  {origin}/reset-password#{token}\n\n"
        f"It works for an hour, and once. It ends all sessions.\n"
        f"If it was not you, nothing needs to be done: your password stays.\n",
    )


def password_changed(to: str, origin: str) -> Mail:
    return Mail(
        to,
        "Your Quorate password was changed",
        f"The password of your Quorate account was changed, and other sessions were ended.\n\n"
        f"If it was not you, set a new one now:\n\n  {origin}/forgot-password\n",
    )


def second_factor_changed(to: str, what: str, origin: str) -> Mail:
    """`what`: a sentence, as in "An authenticator was added."."""
    return Mail(
        to,
        "The second factor of your Quorate account was changed",
        f"{what}\n\nIf it was not you, set a new password now:\n\n  {origin}/forgot-password\n\n"
        f"Then remove passkeys and sessions that are not yours:\n\n  {origin}/account\n",
    )


def invitation(to: str, organization: str, inviter: str, role: str, origin: str, token: str) -> Mail:
    return Mail(
        to,
        f"Join {organization} on Quorate",
        f"{inviter} invites you to the organization {organization} on Quorate, with the role {role}.\n\n"
        f"Accept it here:\n\n  {origin}/invitation#{token}\n\n"
        f"It works for a week.\nIf you do not know {inviter}, nothing needs to be done.\n",
    )


def closing(to: str, organization: str, closes_at: datetime, origin: str) -> Mail:
    return Mail(
        to,
        f"{organization} is closing on Quorate",
        f"An owner asked to close the organization {organization} on Quorate.\n\n"
        f"Its groups refuse appends and reads now. On {closes_at:%Y-%m-%d} they are deleted, with their logs.\n"
        f"Until then an owner can reopen the organization:\n\n  {origin}/organization\n\n"
        f"Reservations are paid until the groups are deleted; delete them earlier to pay less.\n",
    )


def reopened(to: str, organization: str, origin: str) -> Mail:
    return Mail(
        to,
        f"{organization} is active again on Quorate",
        f"The organization {organization} on Quorate is active again. Its groups accept appends within seconds.\n\n"
        f"  {origin}/organization\n",
    )


def quota_changed(to: str, organization: str, what: str, limit: int, origin: str) -> Mail:
    return Mail(
        to,
        f"A quota of {organization} on Quorate is {limit:,} now",
        f"You asked for a greater quota of the organization {organization}:\n\n  {what}\n\n"
        f"It is {limit:,} now.\n\n  {origin}/quotas\n",
    )


def quota_declined(to: str, organization: str, what: str, reason: str, origin: str) -> Mail:
    return Mail(
        to,
        f"A quota of {organization} on Quorate stays as it is",
        f"You asked for a greater quota of the organization {organization}:\n\n  {what}\n\n"
        f"The operators of this service do not raise it now:\n\n  {reason}\n\n  {origin}/quotas\n",
    )


def suspended(to: str, organization: str, reason: str, origin: str) -> Mail:
    return Mail(
        to,
        f"{organization} is suspended on Quorate",
        f"The operators of this service have suspended the organization {organization}:\n\n  {reason}\n\n"
        f"Its groups refuse appends and reads. Nothing is deleted.\n\n  {origin}/organization\n",
    )
