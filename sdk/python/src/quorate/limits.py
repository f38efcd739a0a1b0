"""Every bound of the client, with its reason. What a server allows comes with the handle and HELLO_OK."""

TIMEOUT_S_DEFAULT = 10.0
"""Deadline of a call that names none."""

BATCH_COALESCE_BYTES = 128 * 1024
BATCH_COALESCE_ENTRIES = 8_192
"""Concurrent appends share a batch up to here: beyond, a larger batch saves nothing more per entry."""

BATCH_DEADLINE_SPREAD_S = 0.02
"""Appends share a batch, and so its deadline, if theirs lie no further apart."""

EAGER_BATCHES = 4
"""With fewer batches outstanding the next is sent at once; with more, appends fill it first."""

EAGER_BATCH_BYTES = 16 * 1024
"""A batch of this size is sent whatever is outstanding, up to the window."""

INFLIGHT_BYTES_MAX = 8 << 20
"""Sent and not acknowledged: what a head queues for one group, so more could only be refused."""

PENDING_BYTES_READY = 16 << 20
PENDING_CALLS_READY = 65_536
"""`ready()` waits until less than this is pending."""

PENDING_BYTES_MAX = 256 << 20
PENDING_CALLS_MAX = 1 << 20
"""An append beyond this is refused with queue_full, so that a runaway producer cannot take all memory."""

ANSWER_WAIT_S_DEFAULT = 2.0
"""How long a batch that nobody waits for any more may have no answer before it is sent again on a new connection …"""
GHOST_SENDINGS_MAX = 5
"""… and how often, before the session is given up."""

READS_OUTSTANDING_MAX = 1_024
READ_BYTES_DEFAULT = 1 << 20
TAIL_CREDIT_BYTES = 4 << 20
"""What a tail buffers ahead of its reader: one batch of the largest size."""

TAILS_MAX = 64
"""Subscriptions that a server allows on one connection."""

DIAL_TIMEOUT_S = 1.0
HANDSHAKE_TIMEOUT_S = 2.0
PING_AFTER_S = 0.75
"""Silence while an answer is awaited; then a PING."""
SILENCE_S_MAX = 2.0
"""Silence while an answer is awaited; then the connection counts as broken. With PING_AFTER_S it leaves a
second of the three that a failover may take."""
LIVENESS_TICK_S = 0.25
LAST_WORDS_S_MAX = 1.0
"""How long a closing connection waits for its last frame to leave."""
IDLE_PING_S = 15.0
"""Keeps middleboxes from forgetting an idle connection, and finds out when one did."""

BACKOFF_BASE_S = 0.02
BACKOFF_MAX_S = 0.3
NEW_HEAD_WAIT_S_MAX = 0.75
"""How long a follower whose head cannot be reached is trusted to tell of a new one: longer than the coordinator takes
to replace a head whose process has ended, and short enough to try the others should this one be cut off."""
REDIRECTS_AT_ONCE_MAX = 4
"""Redirects followed without waiting; more of them mean that the replicas disagree, for now."""
REFRESH_INTERVAL_S_MIN = 1.0
"""A client asks the API for a new handle no more often."""
TOKEN_MARGIN_S = 30.0
"""A token this close to its end is replaced before it is used for a new connection."""

CONNECT_FRAME_BYTES_MAX = 65_535
"""Longest frame before HELLO_OK tells the limit (sdk/contract/wire.md)."""
FRAME_BYTES_CEILING = 64 << 20
"""Whatever a server claims, no more is buffered for one frame."""
