"""Limits of a prober, with their reasons."""

KNOCK_TIMEOUT_S = 1.0
KNOCK_INTERVAL_S = 1.0
KNOCK_AGAIN_S = 0.25  # after a miss, so that the end of an outage is seen early
KNOCKS_PER_S_MAX = 200  # each is a TLS handshake. More servers are knocked at less often
MISSES_MIN = 2  # one may be a lost packet, or a busy machine
SERVERS_MAX = 1_000  # the API takes no more of one prober
FAILURES_MAX = 20  # of a server in a minute, as the API takes them
TICK_S = 0.1
CLOCK_SET_S = 0.1  # a clock that jumps further would make an outage longer or shorter
STANDSTILL_S = 0.5  # a prober that stood still for so long has missed nothing by others' fault
SETTLE_S = 3.0  # from a minute's end until it is told: by then an outage at its end has had its second miss
TARGETS_INTERVAL_S = 10.0
REPORT_INTERVAL_S = 1.0
REPORT_RETRY_S_MAX = 10.0
REPORT_MINUTES_MAX = 20  # in one request
REPORT_BYTES_MAX = 60_000  # of a request's body; the API takes 64 KiB
MINUTES_KEPT_MAX = 8 * 24 * 60  # while the API is away; it takes no older ones
API_TIMEOUT_S = 5.0
MISSES_TOLD_EVERY_S = 60.0  # of one server

assert MISSES_MIN * (KNOCK_TIMEOUT_S + KNOCK_AGAIN_S) < SETTLE_S, "an outage at a minute's end is known when it is told"
assert 60 / (MISSES_MIN * KNOCK_AGAIN_S) >= FAILURES_MAX, "the bound on failures can be reached"
