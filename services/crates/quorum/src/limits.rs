//! Bounds of the protocol, with their reasons.

/// Messages with entries to one member that it has not answered. More would only wait in buffers.
pub const APPENDS_IN_FLIGHT_MAX: usize = 16;
/// Payloads that no majority has yet. Beyond it the leader refuses: its followers are slower than its callers.
pub const UNCOMMITTED_BYTES_MAX: usize = 16 << 20;
/// A snapshot is sent in pieces, so that heartbeats pass between them.
pub const SNAPSHOT_CHUNK_BYTES: usize = 256 << 10;
/// A snapshot as a whole: that of 100 000 groups is 150 MB.
pub const SNAPSHOT_BYTES_MAX: u64 = 1 << 30;
/// Messages that wait for the disk. Each may be lost without harm: others come after it.
pub const HELD_MESSAGES_MAX: usize = 1_024;
/// Reads that wait for their round: each is a call of the API.
pub const READS_WAITING_MAX: usize = 4_096;
/// Five, and one more while another is replaced.
pub const VOTERS_MAX: usize = 6;
/// A learner that lacks no more entries becomes a voter. It has them within a few messages.
pub const PROMOTION_LAG_MAX: u64 = 64;
/// Members in all.
pub const MEMBERS_MAX: usize = 9;
