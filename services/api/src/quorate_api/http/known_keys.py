"""API keys that this process has met lately, by their HMAC: whether they were valid.

An address that has sent too many unknown keys is refused before the database is asked. Programs behind the same address
must not suffer from it: their keys are known. A program that goes on with a revoked key costs others nothing either.
"""

from collections import OrderedDict

from quorate_api import limits


class KnownKeys:
    def __init__(self, keys_max: int = limits.KNOWN_KEYS_MAX) -> None:
        self._valid: OrderedDict[bytes, bool] = OrderedDict()  # the one met last is the last
        self._keys_max = keys_max

    def __len__(self) -> int:
        return len(self._valid)

    def was_valid(self, mac: bytes) -> bool | None:
        """None: never met, or too long ago. An invalid key stays so."""
        return self._valid.get(mac)

    def note(self, mac: bytes, is_valid: bool) -> None:
        self._valid[mac] = is_valid
        self._valid.move_to_end(mac)
        if len(self._valid) > self._keys_max:
            self._valid.popitem(last=False)
