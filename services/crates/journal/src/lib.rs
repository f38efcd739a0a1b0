//! The per-server log on disk: one sequence of records to which all groups of a server append, with group commit.
//!
//! ```text
//!  shards ── submit ──▶ [ filling buffer ] ──swap──▶ writer thread ── pwrite, fdatasync ───▶ segment-0000000a
//!    ▲                   lsn and Location               │                    (64 MiB, written through beforehand)
//!    └────────── Event::Durable { tag, lsn } ◀──────────┘         janitor thread: prepares, releases, reuses segments
//! ```
//!
//! While one sync runs, the next buffer fills; there is no timer. A submitter that has nothing else to do may write and
//! sync in its own thread instead of waking another and being woken by it. Bytes: `docs/internals/journal.md`.
//!
//! # Contract
//!
//! The journal MUST
//! - report `Event::Durable { tag }` only after `fdatasync` returned success for that record and every one before it;
//! - give records dense, growing `Lsn`s from 1, in the order of submission, and yield them in that order when opened;
//! - accept a record only if the space for it exists on disk already, so that a full disk is a refusal
//!   ([`SubmitError::DiskFull`]) and never a lost record;
//! - become final on the first write or sync error: nothing more is acknowledged, every submission is refused with
//!   [`SubmitError::Failed`]. A sync that failed is never tried again: the kernel may have dropped the dirty pages.
//! - tell a torn end (records that were never acknowledged) from damage (records that had been): the first is cut,
//!   the second is listed in [`Recovery::damages`], and the intact records around it are still yielded.
//!
//! The journal MUST NOT
//! - block a submitter, but for one that asks for it ([`Submitter::commit_here`]): full buffers are refused
//!   ([`SubmitError::Busy`]) and followed by `Event::Room`;
//! - interpret kinds, heads or payloads, but for [`record::KIND_MARK`], its own, which it yields like any other;
//! - release a segment of its own accord: only below the lsn given to [`Journal::release_before`].
//!
//! The caller MUST
//! - submit tags that never fall, per submitter;
//! - keep events short: they are called on the journal's threads;
//! - read a [`Location`] only after its record is durable;
//! - treat `Event::Failed` as the end of persistent appends in this process.

mod buffer;
mod contents;
mod core;
mod direct;
mod disk;
#[cfg(test)]
mod golden;
mod handle;
mod image;
mod janitor;
mod open;
mod pages;
pub mod record;
mod scan;
mod segment;
mod source;
mod walk;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use quorate_types::limits;

pub use contents::{Reach, Tell};
pub use direct::DirectFile;
pub use disk::{Faults, Operation};
pub use handle::{Journal, Sealed, SegmentSource, Stats, Submitted, Submitter};
pub use image::Image;
pub use pages::Pages;
pub use record::{Location, Lsn, Record, StoredRecord};
pub use scan::{Damage, End, Head, Recovery, Scanned, SegmentFile, Torn, scan};
pub use source::{Source, Window, read_around};
pub use walk::{Step, Walk};

/// How the journal uses its directory.
#[derive(Clone)]
pub struct Options {
    /// Size of one segment file, a multiple of 4096.
    pub segment_bytes: u64,
    /// Bytes that may wait for, or be under, a sync.
    pub buffer_bytes_max: usize,
    /// Released segments kept for reuse; more are deleted.
    pub spare_segments_max: usize,
    /// Bytes at the end of the prepared space that only [`Submission::reserved`] records may use.
    pub reserve_bytes: u64,
    /// The first record's number, if the directory holds none yet.
    pub first_lsn: Lsn,
    /// After so long without submissions, and when it closes, the journal states that all it holds is durable: damage
    /// to the last records is told from a torn end by that. `None`: never.
    pub mark_after: Option<Duration>,
    /// Tells whose a record is. With it, each full segment tells whose records it has, and up to where ([`Sealed::reaches`]).
    pub tell: Option<Tell>,
    /// For tests: asked before each operation on the disk, may make it fail.
    pub faults: Option<Arc<dyn Faults>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: limits::JOURNAL_SEGMENT_BYTES,
            buffer_bytes_max: limits::JOURNAL_BUFFER_BYTES_MAX,
            // As many as the group logs may leave waiting: in steady use no segment is filled with zeros again.
            spare_segments_max: 8,
            reserve_bytes: 1 << 20,
            first_lsn: 1,
            mark_after: Some(Duration::from_secs(1)),
            tell: None,
            faults: None,
        }
    }
}

impl Options {
    /// Longest head plus payload of one record, in bytes.
    pub fn body_bytes_max(&self) -> usize {
        let in_segment = self.segment_bytes - record::SEGMENT_HEAD_BYTES - record::HEADER_BYTES as u64;
        (in_segment as usize).min(self.buffer_bytes_max - record::HEADER_BYTES)
    }

    fn validate(&self) -> Result<(), OpenError> {
        let least = record::SEGMENT_HEAD_BYTES + self.reserve_bytes + 4096;
        let sound = self.segment_bytes.is_multiple_of(4096)
            && self.segment_bytes > least
            && self.segment_bytes <= u64::from(u32::MAX)
            && self.buffer_bytes_max > record::HEADER_BYTES;
        if sound { Ok(()) } else { Err(OpenError::Options) }
    }
}

/// One record to append.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// Opaque to the journal; 0 is its own.
    pub kind: u8,
    /// Copied; at most 65 535 bytes.
    pub head: &'a [u8],
    /// Long payloads stay where they are until they are laid out for the device.
    pub payload: &'a bytes::Bytes,
    /// CRC-32 (IEEE) of the payload, where it was checked already: a long payload is not read for that again.
    pub payload_crc: Option<u32>,
    /// Comes back in [`Event::Durable`]; must not fall.
    pub tag: u64,
    /// May use the reserve when the disk is full: for the few records without which space cannot be freed.
    pub reserved: bool,
}

/// What the journal tells a submitter, on one of the journal's threads.
#[derive(Debug, Clone)]
pub enum Event {
    /// Everything that this submitter submitted up to this tag is on stable storage.
    Durable { tag: u64, lsn: Lsn },
    /// A submission had been refused as busy or for a full disk: try again.
    Room,
    /// No further segment can be prepared. What is prepared is still used; then `SubmitError::DiskFull`.
    DiskFull { reason: Arc<str> },
    /// Segments can be prepared again.
    DiskFree,
    /// The journal is dead: nothing more becomes durable in this process.
    Failed { reason: Arc<str> },
}

/// Receives [`Event`]s; every `Fn(Event)` is one.
pub trait Completion: Send + Sync {
    fn notify(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync> Completion for F {
    fn notify(&self, event: Event) {
        self(event);
    }
}

/// Why a record was not taken. In every case nothing of it was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SubmitError {
    /// Back-pressure: `Event::Room` follows.
    #[error("the journal's buffer is full until the next sync")]
    Busy,
    /// `Event::Room` follows when space was freed.
    #[error("the disk is full: {0}; free space or release old segments")]
    DiskFull(Arc<str>),
    #[error("the journal failed and takes nothing more: {0}; replace the disk and restart the server")]
    Failed(Arc<str>),
    #[error("a record of {bytes} bytes is longer than {max}")]
    TooLong { bytes: usize, max: usize },
    #[error("the journal is closing")]
    Closing,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("journal directory {0} is in use by another process")]
    Locked(std::path::PathBuf),
    #[error("journal options do not fit together")]
    Options,
    #[error("cannot {what} in the journal directory: {source}")]
    Io {
        what: &'static str,
        source: std::io::Error,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the record's segment was released")]
    Released,
    #[error("the record at {0} is damaged; fetch it from another replica")]
    Damaged(Location),
    #[error("cannot read {location}: {source}")]
    Io {
        location: Location,
        source: std::io::Error,
    },
}
