"""Operators' tokens: `qo_` + 40 random characters (238 bits), in a file, one a line.

They are valid for the fleet only, and API keys for one organization only. `tests/test_operator.py` tries each kind on
every call of the other.
"""

import re
import secrets
from dataclasses import dataclass

from quorate_api.security.api_keys import ALPHABET
from quorate_api.security.keys import Keys, same

PREFIX = "qo_"
RANDOM_LENGTH = 40
_FORM = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{RANDOM_LENGTH}}}")


def generate() -> str:
    return PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))


@dataclass(frozen=True, slots=True)
class OperatorTokens:
    """The valid tokens, as HMACs. Two valid at a time allow rotation without a gap."""

    macs: tuple[bytes, ...]

    @classmethod
    def read(cls, keys: Keys, text: str | None) -> "OperatorTokens":
        """Raises `ValueError` with the number of a line that holds no token."""
        macs = []
        for number, line in enumerate((text or "").splitlines(), 1):
            if not line.strip():
                continue
            if not _FORM.fullmatch(line.strip()):
                raise ValueError(f"line {number} holds no operator token: `qo_` and {RANDOM_LENGTH} letters and digits")
            macs.append(keys.mac("operator token", line.strip().encode()))
        return cls(tuple(macs))

    def who(self, keys: Keys, token: str) -> str | None:
        """A name for the token's holder that reveals nothing of the token. None for an unknown token."""
        given = keys.mac("operator token", token.encode())
        found = [mac for mac in self.macs if same(mac, given)]
        return f"operator {found[0].hex()[:12]}" if found else None
