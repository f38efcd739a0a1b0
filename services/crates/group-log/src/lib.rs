//! One log per persistent group on disk, prepared from the journal in the background.
//!
//! ```text
//!  journal: segment ── segment ── segment ── (current)         all groups' records, in the order of their lsns
//!              │  sealed: every record is durable
//!              ▼  thread `group-logs`: read, sort by group, write, sync, note in the manifest
//!  groups/<id>/00000001 ── 00000002 ── …                       one group's records, in the same order
//!              │
//!              └─ then, and only then, the segment is released
//! ```
//!
//! So the journal stays at a few segments whatever groups retain, a group's entries lie together, and trimming frees
//! whole files. Bytes: `docs/internals/group-logs.md`.
//!
//! # Contract
//!
//! - Of a record up to [`Opened::copied_lsn`] the group log is the authority; of one behind it, the journal. The
//!   manifest says which, and is replaced atomically; a crash at any point only has a round copied again.
//! - What the manifest covers was synced: whatever is unreadable there is damage, and reported, never cut.
//! - Records are copied as they are, cuts too; a reader of the log takes them in order, as from the journal.
//! - The journal is released up to what was copied, never further, and by nobody else.
//! - No space or a failing device stops the copying, says so ([`Event::Stalled`]), and is tried again; the journal
//!   holds what is not copied.
//!
//! The caller MUST
//! - open the group logs before the journal, pass over the journal's records up to `copied_lsn`, and then start;
//! - answer [`Event::Lost`] and [`Event::Damaged`] within a bounded time, be it with nothing;
//! - ask to trim only behind a base that is durable.

mod book;
#[cfg(test)]
mod crash;
mod disk;
mod format;
#[cfg(test)]
mod golden;
mod manifest;
mod open;
#[cfg(test)]
mod rig;
mod round;
mod scrub;
mod store;
#[cfg(test)]
mod tests;
mod walk;
mod worker;

use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use quorate_journal::{Faults, Lsn};
use quorate_types::{GroupId, Index, limits};

pub use format::Place;
pub use open::{Found, Opened};
/// A record read back, from here as from the journal.
pub use quorate_journal::StoredRecord;
pub use store::{GroupLogs, ReadError, Stats};

/// What a record of the journal means, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Its payload is read at a start only if the journal still has it.
    Batch {
        index: Index,
    },
    /// All records of the group before this one mean nothing: its files can go.
    Dropped,
    Other,
}

/// Tells group and meaning of a record by its kind and head; `None`: it is not one of this version.
pub type Classify = fn(kind: u8, head: &[u8]) -> Option<(GroupId, Meaning)>;

/// How group logs use their directory and device.
#[derive(Clone)]
pub struct Options {
    pub classify: Classify,
    /// A file is closed before it grows beyond this.
    pub file_bytes: u32,
    /// Read from the journal, and synced, at once.
    pub round_bytes: u64,
    pub round_records: usize,
    /// So many full segments wait in the journal: what is trimmed meanwhile is never copied.
    pub keep_segments: usize,
    /// But none waits longer than this: what lies in the journal only is not scrubbed.
    pub keep_for: Duration,
    /// Of these, waits in memory before it is written, all groups together.
    pub pending_bytes: usize,
    /// Copying goes no faster while the journal has few segments.
    pub copy_bytes_per_s: u64,
    /// Re-reading for the sake of finding damage goes no faster.
    pub scrub_bytes_per_s: u64,
    /// Space on the device that copying leaves free.
    pub reserve_bytes: u64,
    /// How many are asked for lost records: the shards.
    pub answerers: usize,
    /// How long they are waited for in silence: each record that one brings, or gives up, begins it anew, so that a large
    /// hole takes its time and no round does in vain what the last one did.
    pub rescue_timeout: Duration,
    /// How often the journal is looked at.
    pub poll: Duration,
    /// For tests: asked before each operation on the disk, may make it fail.
    pub faults: Option<Arc<dyn Faults>>,
}

impl Options {
    pub fn new(classify: Classify) -> Self {
        Self {
            classify,
            file_bytes: limits::GROUP_LOG_FILE_BYTES,
            round_bytes: limits::GROUP_LOG_ROUND_BYTES,
            round_records: limits::GROUP_LOG_ROUND_RECORDS_MAX,
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

/// What the group logs' thread has to tell.
#[derive(Debug)]
pub enum Event {
    /// These records lie in the group's log now; the journal no longer keeps them.
    Moved {
        group: GroupId,
        records: Vec<(Lsn, Place)>,
    },
    /// Records of the journal cannot be read, and are to be copied: each of the [`Options::answerers`] sends those that
    /// it has, and then that it is done. What nobody has is left out, and [`Event::Incomplete`] follows.
    Lost {
        lsns: Range<Lsn>,
        answer: mpsc::Sender<Answer>,
    },
    /// A record of the group's log is damaged; repair it by [`GroupLogs::rewrite`]. Answer whether it is a record
    /// that is needed: one that is not is made void.
    Damaged {
        group: GroupId,
        place: Place,
        answer: mpsc::Sender<bool>,
    },
    /// Records other than batches were lost: each group (or this one) is to state anew where its log begins and ends.
    Incomplete {
        group: Option<GroupId>,
    },
    /// Nothing is copied for now; the journal grows.
    Stalled {
        reason: Arc<str>,
    },
    Resumed,
}

/// To [`Event::Lost`].
#[derive(Debug)]
pub enum Answer {
    Record(Rescued),
    Done,
}

/// A record of the journal got from elsewhere.
#[derive(Debug, Clone)]
pub struct Rescued {
    pub group: GroupId,
    pub lsn: Lsn,
    pub kind: u8,
    pub head: Bytes,
    /// `Err`: the payload, of this length, is not to be had for now; its place is kept, and it reads as damaged.
    pub payload: Result<Bytes, u32>,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("group logs in {0} are in use by another process")]
    Locked(std::path::PathBuf),
    #[error("group logs: {0}")]
    Foreign(String),
    #[error("cannot {what} in the group logs: {source}")]
    Io {
        what: &'static str,
        source: std::io::Error,
    },
}
