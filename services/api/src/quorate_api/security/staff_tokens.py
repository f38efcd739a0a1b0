"""Tokens of those who run the fleet: a prefix + 40 random characters (238 bits), in a file, one a line.

A name may follow on the line.

Operators' tokens (`qo_`) are valid for the fleet, probers' (`qp_`) for reports from outside, and API keys for one
organization only. `tests/test_operator.py` tries each kind on every call of the others.
"""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from quorate_api.security.api_keys import ALPHABET
from quorate_api.security.keys import Keys, same
from quorate_api.security.operator_sessions import NAME

Staff = Literal["operator", "prober"]
PREFIXES: dict[Staff, str] = {"operator": "qo_", "prober": "qp_"}
RANDOM_LENGTH = 40
RANDOM_BYTES = 64  # so many more than the token has that each character is as likely as any other


def generate(staff: Staff, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> str:
    """`random_bytes`: gives so many bytes, which decide the token."""
    number = int.from_bytes(random_bytes(RANDOM_BYTES))
    characters = []
    for _ in range(RANDOM_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[digit])
    return PREFIXES[staff] + "".join(characters)


@dataclass(frozen=True, slots=True)
class StaffTokens:
    """The valid tokens of one kind, as HMACs. Two valid at a time allow rotation without a gap."""

    staff: Staff
    macs: tuple[bytes, ...]
    names: tuple[str | None, ...]

    @classmethod
    def read(cls, keys: Keys, staff: Staff, text: str | None) -> "StaffTokens":
        """Raises `ValueError` with the number of a line that holds no token."""
        prefix = PREFIXES[staff]
        form = re.compile(rf"({prefix}[0-9A-Za-z]{{{RANDOM_LENGTH}}})(?:\s+({NAME.pattern}))?")
        macs, names = [], []
        for number, line in enumerate((text or "").splitlines(), 1):
            if not line.strip():
                continue
            found = form.fullmatch(line.strip())
            if found is None:
                raise ValueError(
                    f"line {number} holds no {staff} token: `{prefix}` and {RANDOM_LENGTH} letters and digits, and"
                    " perhaps a name"
                )
            macs.append(keys.mac(f"{staff} token", found.group(1).encode()))
            names.append(found.group(2))
        return cls(staff, tuple(macs), tuple(names))

    def who(self, keys: Keys, token: str) -> str | None:
        """The name of the token's holder, or one that reveals nothing of the token. None for an unknown token."""
        given = keys.mac(f"{self.staff} token", token.encode())
        found = [(mac, name) for mac, name in zip(self.macs, self.names, strict=True) if same(mac, given)]
        if not found:
            return None
        mac, name = found[0]
        return name or f"{self.staff} {mac.hex()[:12]}"
