"""Power cuts: unsynced writes of a server can be lost (unsynced.c logs them, rollback.py undoes them)."""

from quorate_chaos.power.control import Power, Unseen
from quorate_chaos.power.rollback import MODES, Rolled, roll_back

__all__ = ["MODES", "Power", "Rolled", "Unseen", "roll_back"]
