"""Every bound of the client, with its reason. The handle and HELLO_OK carry the servers' bounds."""

TIMEOUT_S_DEFAULT = 10.0
"""Deadline of a call without one."""

BATCH_COALESCE_BYTES = 128 * 1024
BATCH_COALESCE_ENTRIES = 8_192
"""Concurrent appends share a batch up to this size. A larger batch saves nothing more per entry."""

BATCH_DEADLINE_SPREAD_S = 0.02
"""Appends share a batch and its deadline if their own deadlines differ by at most this."""

EAGER_BATCHES = 4
"""With fewer outstanding batches the next one is sent at once. With more, appends fill it first."""

EAGER_BATCH_BYTES = 16 * 1024
"""A batch of this size is sent at once, up to the window."""

INFLIGHT_BYTES_MAX = 8 << 20
"""Bound on unacknowledged bytes: a head queues as much for one group, and would refuse more."""

PENDING_BYTES_READY = 16 << 20
PENDING_CALLS_READY = 65_536
"""`ready()` waits until fewer bytes and calls are pending."""
READY_S = 1.0
"""`ready()` waits until the head's rate lets what is pending pass within this: a tenth of the default deadline. The
rest is for what a head charges above a token, and for other clients of the group."""

PENDING_BYTES_MAX = 256 << 20
PENDING_CALLS_MAX = 1 << 20
"""An append beyond this is refused with queue_full, so that a runaway producer cannot exhaust memory."""

ANSWER_WAIT_S_DEFAULT = 2.0
"""An abandoned batch (its callers' deadlines have passed) may be unanswered for this long before it is sent again on a
new connection."""
ABANDONED_SENDINGS_MAX = 5
"""An abandoned batch is sent again this often before its session ends."""

READS_OUTSTANDING_MAX = 1_024
READ_WINDOW_FIRST = 8.0
READ_WINDOW_MORE = 1.0
"""Reads that may be outstanding at a replica at first, and by how many its window grows while it is the quickest."""
READ_LATENCY_PART = 0.25
"""Weight of the newest latency in a replica's average: a slow replica is known after a few answers."""
READ_PROBE_S = 1.0
"""A replica that was asked nothing for so long gets one read, so that it is known when it is quick again."""
READ_BYTES_DEFAULT = 1 << 20
TAIL_CREDIT_BYTES = 4 << 20
"""Bytes that a tail buffers ahead of its reader: one batch of the largest size."""

TAILS_MAX = 64
"""Subscriptions that a server allows on one connection."""

DIAL_TIMEOUT_S = 1.0
HANDSHAKE_TIMEOUT_S = 2.0
LIVENESS_TICK_S = 0.1
PING_AFTER_TICKS = 3
"""Ticks in silence, while an answer is awaited, until a PING is sent. Ticks are counted, and not time: a process that
stood still had none."""
SILENT_TICKS_MAX = 8
"""Ticks in silence, while an answer is awaited, until the connection counts as broken. The service replaces a head that
its peers do not hear in about as long."""
LAST_WORDS_S_MAX = 1.0
"""Bound on a closing connection's wait for its last frame to leave."""
IDLE_PING_S = 15.0
"""Keeps middleboxes from dropping an idle connection, and detects that one did."""

BACKOFF_BASE_S = 0.02
BACKOFF_MAX_S = 0.3
NEW_HEAD_WAIT_S_MAX = 0.75
"""Bound on the wait at a follower, whose head is unreachable, for notice of a new head. The coordinator replaces a dead
head sooner. An isolated follower is left soon enough to try the others."""
REDIRECTS_AT_ONCE_MAX = 4
"""Redirects followed without waiting. More of them mean that the replicas disagree for now."""
REFRESH_INTERVAL_S_MIN = 1.0
"""Least time between two requests for a new handle."""
TOKEN_MARGIN_S = 30.0
"""A token this close to its expiry is replaced before a new connection uses it."""

CONNECT_FRAME_BYTES_MAX = 65_535
"""Longest frame before HELLO_OK sets the limit (sdk/contract/wire.md)."""
FRAME_BYTES_CEILING = 64 << 20
"""Bound on the buffer of one frame, whatever limit a server sends."""

LAYOUT_POLL_S_MIN = 0.05
LAYOUT_POLL_S_MAX = 1.0
"""Time between two requests for a handle while partitions are being added: a growth takes a tenth of a second or so."""
LAYOUT_WATCH_S = 30.0
"""A merged tail asks for a handle as often, to learn of partitions that were added."""
LAYOUT_LOOKS_S = (0.1, 0.3, 1.0, 3.0)
"""It does so, too, so long after a partition's epoch has changed: a growth begins an epoch in each."""
EPOCH_TICK_S = 0.05
"""A merged tail compares the epochs that its partitions were seen in as often."""
MERGED_BATCHES_MAX = 64
"""Batches of all partitions together that a merged tail holds ready. Each tail buffers its credit beside them."""
PARTITION_CREDIT_BYTES = 256 * 1024
"""Bytes that each partition's tail buffers in a merged one: 64 MB for 256 partitions."""
