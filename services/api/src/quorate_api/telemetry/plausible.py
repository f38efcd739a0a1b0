"""Is a usage window possible at all? Pure. A server that is wrong, or no server of ours, must not bill anybody."""

from quorate_api import limits
from quorate_api.telemetry.windows import DAY_S, WINDOW_S, Window

# A group's age is the database's word, and a window's time the server's.


def kept_from_s(now_s: float) -> int:
    """The begin of the oldest day whose windows are kept."""
    return int(now_s // DAY_S - limits.USAGE_DAYS_KEPT) * DAY_S


def objection(window: Window, group_since_s: float, now_s: float) -> str | None:
    """The reason for which the window cannot be true; None: it may be.

    `group_since_s`: the time of the group's creation. `now_s`: the present, by the clock that is furthest ahead.
    """
    ahead_s = window.window_start_s - now_s
    start_ms = window.window_start_s * 1_000
    lived_s = max(DAY_S, window.window_start_s + WINDOW_S - group_since_s)
    objections = (
        (
            ahead_s > limits.INGEST_CLOCK_AHEAD_S_MAX,
            f"it begins {ahead_s:.0f} s from now: the server's clock is wrong",
        ),
        (
            window.window_start_s < kept_from_s(now_s),
            f"its day has been settled: windows are kept for {limits.USAGE_DAYS_KEPT} days",
        ),
        (
            window.to_ms > 0 and not start_ms <= window.from_ms <= window.to_ms <= start_ms + WINDOW_S * 1_000,
            "the time that it covers is not within its minute",
        ),
        (window.stored_bytes > limits.USAGE_STORED_BYTES_MAX, "more stored than any group may retain"),
        (
            window.read_entries > limits.USAGE_READ_ENTRIES_MAX,
            "more entries read than any server can send in a minute",
        ),
        (window.late_read_entries > window.owed_read_entries, "more reads were late than were owed"),
        (
            window.committed_entries < window.first_committed_entries,
            "its counter of committed entries runs backwards",
        ),
        (window.committed_bytes < window.first_committed_bytes, "its counter of committed bytes runs backwards"),
        (
            window.committed_entries > lived_s * limits.RATE_PER_S_MAX,
            "more entries than any group can commit in the time since its creation",
        ),
    )
    return next((reason for holds, reason in objections if holds), None)
