//! Every bound of the client, with its reason. A server's limits come with the handle and HELLO_OK.

use std::time::Duration;

use quorate_types::Micros;

/// Deadline of a call without one.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Concurrent appends share a batch up to this size: a larger batch saves nothing more per entry.
pub const BATCH_COALESCE_BYTES: u32 = 128 << 10;
pub const BATCH_COALESCE_ENTRIES: u32 = 8_192;
/// Appends share a batch, and its deadline, if their deadlines are at most this far apart.
pub const BATCH_DEADLINE_SPREAD_US: Micros = 20_000;

/// With fewer batches outstanding, the next is sent at once; with more, appends fill it first.
pub const EAGER_BATCHES: usize = 4;
/// A batch of this size is sent at once, up to the window.
pub const EAGER_BATCH_BYTES: u32 = 16 << 10;
/// Most bytes sent and not acknowledged. A head queues as much for one group, so it would refuse more.
pub const INFLIGHT_BYTES_MAX: u64 = 8 << 20;

/// Appends beyond this are refused with queue_full, so that a runaway producer cannot take all memory.
pub const PENDING_BYTES_MAX: u64 = 256 << 20;
pub const PENDING_CALLS_MAX: usize = 1 << 20;
/// `Client::ready` waits until less than this is pending.
pub const PENDING_BYTES_READY: u64 = 16 << 20;
pub const PENDING_CALLS_READY: usize = 65_536;
/// Buffers of acknowledged batches kept for the next ones.
pub const SPARE_BUFFERS_MAX: usize = 8;

/// Longest time without an answer to an orphaned batch, one without callers, before it is sent on a new connection.
pub const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// Most sendings of an orphaned batch before the session is replaced.
pub const ABANDONED_SENDINGS_MAX: u32 = 5;

pub const READS_OUTSTANDING_MAX: usize = 1_024;
pub const READ_BYTES_DEFAULT: u32 = 1 << 20;
/// Bytes that a tail buffers ahead of its reader: one batch of the largest size.
pub const TAIL_CREDIT_BYTES: u32 = 4 << 20;
/// Subscriptions that a server allows on one connection.
pub const TAILS_MAX: usize = 64;

pub const DIAL_TIMEOUT: Duration = Duration::from_secs(1);
pub const HANDSHAKE_TIMEOUT_US: Micros = 2_000_000;
pub const LIVENESS_TICK_US: Micros = 100_000;
/// Ticks in silence, while an answer is awaited, until a PING is sent. Ticks are counted, and not time: a process that stood
/// still had none.
pub const PING_AFTER_TICKS: u32 = 3;
/// Ticks in silence, while an answer is awaited, until the connection counts as broken. The coordinator replaces a head that
/// its peers do not hear in about as long.
pub const SILENT_TICKS_MAX: u32 = 8;
/// Keeps middleboxes from forgetting an idle connection, and detects it when one did.
pub const IDLE_PING_US: Micros = 15_000_000;

pub const BACKOFF_BASE_US: Micros = 20_000;
/// Short, so that little is added to a failover; with full jitter it is half of that on average.
pub const BACKOFF_MAX_US: Micros = 300_000;
/// Longest wait for a new head at a follower whose head cannot be reached. The coordinator replaces a head whose process
/// has ended in less. It is short enough to try the others if this follower is isolated.
pub const NEW_HEAD_WAIT_US_MAX: Micros = 750_000;
/// Redirects followed without waiting; more of them mean that the replicas disagree, for now.
pub const REDIRECTS_AT_ONCE_MAX: u32 = 4;
/// Shortest interval between requests for a new handle.
pub const REFRESH_INTERVAL_US_MIN: Micros = 1_000_000;
/// Longest wait for the source of new handles.
pub const REFRESH_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest frame before HELLO_OK states the limit (`sdk/contract/wire.md`).
pub const CONNECT_FRAME_BYTES_MAX: u32 = 65_535;
/// Most bytes buffered for one frame, whatever limit a server states.
pub const FRAME_BYTES_CEILING: u32 = 64 << 20;

const _: () = assert!(
    EAGER_BATCH_BYTES <= BATCH_COALESCE_BYTES,
    "a batch can become large enough to be sent"
);
const _: () = assert!(BATCH_COALESCE_BYTES as u64 <= INFLIGHT_BYTES_MAX);
const _: () = assert!(PING_AFTER_TICKS < SILENT_TICKS_MAX);
