"""Is a usage window possible at all? Pure. A server that is wrong, or no server of ours, must not bill anybody."""

from quorate_api import limits
from quorate_api.telemetry.windows import WINDOW_S, Window

# A group's age is the database's word, and a window's time the server's.
DAY_S = 86_400


def objection(window: Window, group_since_s: float, now_s: float) -> str | None:
    """The reason for which the window cannot be true; None: it may be.

    `group_since_s`: the time of the group's creation.
    """
    if window.window_start_s > now_s + limits.INGEST_CLOCK_AHEAD_S_MAX:
        return f"it begins {window.window_start_s - now_s:.0f} s from now: the server's clock is wrong"
    if window.committed_entries < window.first_committed_entries:
        return "its counter of committed entries runs backwards"
    if window.committed_bytes < window.first_committed_bytes:
        return "its counter of committed bytes runs backwards"
    lived_s = max(DAY_S, window.window_start_s + WINDOW_S - group_since_s)
    if window.committed_entries > lived_s * limits.RATE_PER_S_MAX:
        return "more entries than any group can commit in the time since its creation"
    return None
