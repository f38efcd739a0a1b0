"""Power cuts: what a server has not synced can be lost (unsynced.c notes it, rollback.py takes it back)."""

from quorate_chaos.power.control import Power, Unseen
from quorate_chaos.power.rollback import MODES, Rolled, roll_back

__all__ = ["MODES", "Power", "Rolled", "Unseen", "roll_back"]
