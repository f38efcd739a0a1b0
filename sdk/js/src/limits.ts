/** Every bound of the client, with its reason. The handle and HELLO_OK carry the servers' bounds. */

/** Deadline of a call without one. */
export const TIMEOUT_MS_DEFAULT = 10_000;

/** Concurrent appends share a batch up to this size. A larger batch saves nothing more per entry. */
export const BATCH_COALESCE_BYTES = 128 * 1024;
export const BATCH_COALESCE_ENTRIES = 8_192;

/** Appends share a batch and its deadline if their own deadlines differ by at most this. */
export const BATCH_DEADLINE_SPREAD_MS = 20;

/** With fewer outstanding batches the next one is sent at once. With more, appends fill it first. */
export const EAGER_BATCHES = 4;

/** A batch of this size is sent at once, up to the window. */
export const EAGER_BATCH_BYTES = 16 * 1024;

/** Bound on unacknowledged bytes: a head queues as much for one group, and would refuse more. */
export const INFLIGHT_BYTES_MAX = 8 << 20;

/** `ready()` waits until fewer bytes and calls are pending. */
export const PENDING_BYTES_READY = 16 << 20;
export const PENDING_CALLS_READY = 65_536;
/**
 * `ready()` waits until the head's rate lets what is pending pass within this: a tenth of the default deadline. The
 * rest is for what a head charges above a token, and for other clients of the group.
 */
export const READY_MS = 1_000;

/** An append beyond this is refused with queue_full, so that a runaway producer cannot exhaust memory. */
export const PENDING_BYTES_MAX = 256 << 20;
export const PENDING_CALLS_MAX = 1 << 20;

/**
 * An abandoned batch (its callers' deadlines have passed) may be unanswered for this long before it is sent again on a
 * new connection.
 */
export const ANSWER_WAIT_MS_DEFAULT = 2_000;

/** An abandoned batch is sent again this often before its session ends. */
export const ABANDONED_SENDINGS_MAX = 5;

export const READS_OUTSTANDING_MAX = 1_024;

/** Reads that may be outstanding at a replica at first, and by how many its window grows while it is the quickest. */
export const READ_WINDOW_FIRST = 8;
export const READ_WINDOW_MORE = 1;

/** Weight of the newest latency in a replica's average: a slow replica is known after a few answers. */
export const READ_LATENCY_PART = 0.25;

/** A replica that was asked nothing for so long gets one read, so that it is known when it is quick again. */
export const READ_PROBE_MS = 1_000;

export const READ_BYTES_DEFAULT = 1 << 20;

/** Bytes that a tail buffers ahead of its reader: one batch of the largest size. */
export const TAIL_CREDIT_BYTES = 4 << 20;

/** Subscriptions that a server allows on one connection. */
export const TAILS_MAX = 64;

export const DIAL_TIMEOUT_MS = 1_000;
export const HANDSHAKE_TIMEOUT_MS = 2_000;

export const LIVENESS_TICK_MS = 100;

/**
 * Ticks in silence, while an answer is awaited, until a PING is sent. Ticks are counted, and not time: a process that
 * stood still had none.
 */
export const PING_AFTER_TICKS = 3;

/**
 * Ticks in silence, while an answer is awaited, until the connection counts as broken. The service replaces a head that
 * its peers do not hear in about as long.
 */
export const SILENT_TICKS_MAX = 8;

/** Bound on a closing connection's wait for its last frame to leave. */
export const LAST_WORDS_MS_MAX = 1_000;

/** Keeps middleboxes from dropping an idle connection, and detects that one did. */
export const IDLE_PING_MS = 15_000;

export const BACKOFF_BASE_MS = 20;
export const BACKOFF_MAX_MS = 300;

/**
 * Bound on the wait at a follower, whose head is unreachable, for notice of a new head. The coordinator replaces a dead
 * head sooner. An isolated follower is left soon enough to try the others.
 */
export const NEW_HEAD_WAIT_MS_MAX = 750;

/** Redirects followed without waiting. More of them mean that the replicas disagree for now. */
export const REDIRECTS_AT_ONCE_MAX = 4;

/** Least time between two requests for a new handle. */
export const REFRESH_INTERVAL_MS_MIN = 1_000;

/** A token this close to its expiry is replaced before a new connection uses it. */
export const TOKEN_MARGIN_MS = 30_000;

/** Longest frame before HELLO_OK sets the limit (sdk/contract/wire.md). */
export const CONNECT_FRAME_BYTES_MAX = 65_535;

/** Bound on the buffer of one frame, whatever limit a server sends. */
export const FRAME_BYTES_CEILING = 64 << 20;

/** Time between two requests for a handle while partitions are being added: a growth takes a tenth of a second or so. */
export const LAYOUT_POLL_MS_MIN = 50;
export const LAYOUT_POLL_MS_MAX = 1_000;
/** A merged tail asks for a handle as often, to learn of partitions that were added. */
export const LAYOUT_WATCH_MS = 30_000;
/** It does so, too, so long after a partition's epoch has changed: a growth begins an epoch in each. */
export const LAYOUT_LOOKS_MS: readonly number[] = [100, 300, 1_000, 3_000];
/** A merged tail compares the epochs that its partitions were seen in as often. */
export const EPOCH_TICK_MS = 50;
/** Batches of all partitions together that a merged tail holds ready. Each tail buffers its credit beside them. */
export const MERGED_BATCHES_MAX = 64;
/** Bytes that each partition's tail buffers in a merged one: 64 MB for 256 partitions. */
export const PARTITION_CREDIT_BYTES = 256 * 1_024;
