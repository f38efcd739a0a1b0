//! Options of the group logs.

use std::sync::Arc;
use std::time::Duration;

use quorate_journal::Faults;
use quorate_types::{GroupId, Index, limits};

/// Meaning of a record of the journal to the group logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// At a start, its payload is read only if the journal still has it.
    Batch {
        index: Index,
    },
    /// All earlier records of the group are void: its files can go.
    Dropped,
    Other,
}

/// Names group and meaning of a record by its kind and head; `None`: it is not one of this version.
pub type Classify = fn(kind: u8, head: &[u8]) -> Option<(GroupId, Meaning)>;

/// How group logs use their directory and device.
#[derive(Clone)]
pub struct GroupLogOptions {
    pub classify: Classify,
    /// A file is closed before it grows beyond this.
    pub file_bytes: u32,
    /// Bound of one copy pass, in bytes read from the journal.
    pub pass_bytes: u64,
    /// Bound of one copy pass, in records.
    pub pass_records: usize,
    /// Full segments left in the journal: records trimmed meanwhile are never copied.
    pub keep_segments: usize,
    /// Longest time that a full segment stays: records that only the journal has are not scrubbed.
    pub keep_for: Duration,
    /// Most bytes that wait in memory before they are written, all groups together.
    pub pending_bytes: usize,
    /// Rate of copying while the journal has few segments.
    pub copy_bytes_per_s: u64,
    /// Rate of reading files in search of damage.
    pub scrub_bytes_per_s: u64,
    /// Space on the device that copying leaves free.
    pub reserve_bytes: u64,
    /// Number of answers to expect about lost records: one from each shard.
    pub answerers: usize,
    /// Longest silence while lost records are collected. Each record received resets it: a large hole may take longer in
    /// total, and no copy pass repeats the last one's work in vain.
    pub rescue_timeout: Duration,
    /// Interval between looks at the journal.
    pub poll: Duration,
    /// For tests: called before each operation on the disk, may make it fail.
    pub faults: Option<Arc<dyn Faults>>,
}

impl GroupLogOptions {
    pub fn new(classify: Classify) -> Self {
        Self {
            classify,
            file_bytes: limits::GROUP_LOG_FILE_BYTES,
            pass_bytes: limits::GROUP_LOG_PASS_BYTES,
            pass_records: limits::GROUP_LOG_PASS_RECORDS_MAX,
            keep_segments: limits::GROUP_LOG_KEEP_SEGMENTS,
            keep_for: Duration::from_secs(limits::GROUP_LOG_KEEP_S),
            pending_bytes: 16 << 20,
            copy_bytes_per_s: limits::GROUP_LOG_COPY_BYTES_PER_S,
            scrub_bytes_per_s: limits::GROUP_LOG_SCRUB_BYTES_PER_S,
            reserve_bytes: limits::DISK_RESERVE_BYTES,
            answerers: 1,
            rescue_timeout: Duration::from_secs(60),
            poll: Duration::from_millis(250),
            faults: None,
        }
    }
}
