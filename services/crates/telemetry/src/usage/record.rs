//! Entries of the streams `quorate:usage` and `quorate:live`.

use quorate_types::{Epoch, GroupId, Role};
use serde::Serialize;

use quorate_usage::Buckets;

pub const WINDOW_S: u64 = 60;
pub const WINDOW_MS: u64 = WINDOW_S * 1000;

/// An entry of `quorate:usage`. `R`: records, or their JSON.
#[derive(Debug, Clone, Serialize)]
pub struct UsageEntry<'a, R: ?Sized> {
    pub v: u8,
    pub server_id: u32,
    pub incarnation: &'a str,
    pub at_ms: u64,
    #[serde(flatten)]
    pub process: Process,
    pub records: &'a R,
}

/// Memory and CPU time of the whole server process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Resident memory.
    pub memory_bytes: u64,
    /// CPU time of all threads since the process began.
    pub cpu_us: u64,
}

/// One group in one epoch and window, on this server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageRecord {
    pub group: GroupId,
    pub epoch: Epoch,
    /// Counters of different logs of a group are added up.
    pub log_epoch: Epoch,
    pub role: Role,
    pub window_start_s: u64,
    pub window_s: u64,
    /// Counts since the log began.
    pub committed_entries: u64,
    pub committed_bytes: u64,
    /// The same at the beginning of the window here.
    pub first_committed_entries: u64,
    pub first_committed_bytes: u64,
    /// Counts within the window.
    pub offered_entries: u64,
    pub throttled_entries: u64,
    pub throttled_within_sla_entries: u64,
    pub within_sla_entries: u64,
    pub refused_entries: u64,
    pub read_entries: u64,
    pub read_bytes: u64,
    /// Entries that the reservation for reads let pass, and those of them that left late.
    #[serde(skip_serializing_if = "is_zero")]
    pub owed_read_entries: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub late_read_entries: u64,
    pub active_ms: u64,
    pub paused_ms: u64,
    /// A head's time in the window, by the wall clock: from its first sample to the last time it was active. Zero for
    /// others.
    pub from_ms: u64,
    pub to_ms: u64,
    /// The most that was stored within the window.
    pub stored_bytes: u64,
    #[serde(skip_serializing_if = "Buckets::is_empty")]
    pub latency_us: Buckets,
    /// Latencies of entries within the reservation, from the time at which it let them pass; `None` if those are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged_latency_us: Option<Buckets>,
}

/// Most groups reserve no reads.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// An entry of `quorate:live`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveEntry {
    pub v: u8,
    pub server_id: u32,
    pub at_ms: u64,
    pub groups: Vec<LiveGroup>,
}

/// The last second of one group, at its head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LiveGroup {
    pub group: GroupId,
    pub epoch: Epoch,
    pub role: Role,
    pub committed_entries: u64,
    pub append_per_s: u64,
    pub offered_per_s: u64,
    pub throttled_per_s: u64,
    /// `None` when nothing was committed.
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
    /// The same from the order at the head to the commit: without the queue.
    pub chain_p50_us: Option<u64>,
}
