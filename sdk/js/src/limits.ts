/** Every bound of the client, with its reason. What a server allows comes with the handle and HELLO_OK. */

/** Deadline of a call that names none. */
export const TIMEOUT_MS_DEFAULT = 10_000;

/** Concurrent appends share a batch up to here: beyond, a larger batch saves nothing more per entry. */
export const BATCH_COALESCE_BYTES = 128 * 1024;
export const BATCH_COALESCE_ENTRIES = 8_192;

/** Appends share a batch, and so its deadline, if theirs lie no further apart. */
export const BATCH_DEADLINE_SPREAD_MS = 20;

/** With fewer batches outstanding the next is sent at once; with more, appends fill it first. */
export const EAGER_BATCHES = 4;

/** A batch of this size is sent whatever is outstanding, up to the window. */
export const EAGER_BATCH_BYTES = 16 * 1024;

/** Sent and not acknowledged: what a head queues for one group, so more could only be refused. */
export const INFLIGHT_BYTES_MAX = 8 << 20;

/** `ready()` waits until less than this is pending. */
export const PENDING_BYTES_READY = 16 << 20;
export const PENDING_CALLS_READY = 65_536;

/** An append beyond this is refused with queue_full, so that a runaway producer cannot take all memory. */
export const PENDING_BYTES_MAX = 256 << 20;
export const PENDING_CALLS_MAX = 1 << 20;

/** How long a batch that nobody waits for any more may have no answer before it is sent again on a new connection … */
export const ANSWER_WAIT_MS_DEFAULT = 2_000;

/** … and how often, before the session is given up. */
export const GHOST_SENDINGS_MAX = 5;

export const READS_OUTSTANDING_MAX = 1_024;
export const READ_BYTES_DEFAULT = 1 << 20;

/** What a tail buffers ahead of its reader: one batch of the largest size. */
export const TAIL_CREDIT_BYTES = 4 << 20;

/** Subscriptions that a server allows on one connection. */
export const TAILS_MAX = 64;

export const DIAL_TIMEOUT_MS = 1_000;
export const HANDSHAKE_TIMEOUT_MS = 2_000;

/** Silence while an answer is awaited; then a PING. */
export const PING_AFTER_MS = 750;

/**
 * Silence while an answer is awaited; then the connection counts as broken. With PING_AFTER_MS it leaves a second of
 * the three that a failover may take.
 */
export const SILENCE_MS_MAX = 2_000;
export const LIVENESS_TICK_MS = 250;

/** How long a closing connection waits for its last frame to leave. */
export const LAST_WORDS_MS_MAX = 1_000;

/** Keeps middleboxes from forgetting an idle connection, and finds out when one did. */
export const IDLE_PING_MS = 15_000;

export const BACKOFF_BASE_MS = 20;
export const BACKOFF_MAX_MS = 300;

/**
 * How long a follower whose head cannot be reached is trusted to tell of a new one: longer than the coordinator takes to
 * replace a head whose process has ended, and short enough to try the others should this one be cut off.
 */
export const NEW_HEAD_WAIT_MS_MAX = 750;

/** Redirects followed without waiting; more of them mean that the replicas disagree, for now. */
export const REDIRECTS_AT_ONCE_MAX = 4;

/** A client asks the API for a new handle no more often. */
export const REFRESH_INTERVAL_MS_MIN = 1_000;

/** A token this close to its end is replaced before it is used for a new connection. */
export const TOKEN_MARGIN_MS = 30_000;

/** Longest frame before HELLO_OK tells the limit (sdk/contract/wire.md). */
export const CONNECT_FRAME_BYTES_MAX = 65_535;

/** Whatever a server claims, no more is buffered for one frame. */
export const FRAME_BYTES_CEILING = 64 << 20;
