"""Codes of an authenticator (RFC 6238): six digits, another each half minute. No I/O."""

import hmac

import pyotp

from quorate_api import limits

ISSUER = "Quorate"


def new_secret() -> str:
    return pyotp.random_base32()


def uri(secret: str, email: str) -> str:
    """For the QR code that authenticators read."""
    return pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=ISSUER)


def step_of(secret: str, code: str, now_s: float, after: int) -> int | None:
    """The step whose code it is, if that lies behind `after`: no code works twice. None: the code is wrong."""
    totp, present = pyotp.TOTP(secret), int(now_s) // limits.TOTP_STEP_S
    found = None
    for step in range(present - limits.TOTP_STEPS_OFF, present + limits.TOTP_STEPS_OFF + 1):
        if hmac.compare_digest(totp.generate_otp(step).encode(), code.encode()) and step > after:
            found = step
    return found
