//! The per-server log on disk: one sequence of records to which all groups of a server append, with group commit.
//!
//! ```text
//!  shards ── submit ──▶ [ filling buffer ] ──swap──▶ writer thread ── pwrite, fdatasync ───▶ segment-0000000a
//!    ▲                   lsn and Location               │                    (64 MiB, filled with zeros beforehand)
//!    └────────── Event::Durable { tag, lsn } ◀──────────┘         janitor thread: prepares, releases, reuses segments
//! ```
//!
//! While one sync runs, the next buffer fills; there is no timer. A submitter with nothing else to do may write and
//! sync in its own thread: that saves two thread wake-ups. Bytes: `docs/internals/journal.md`.
//!
//! # Contract
//!
//! The journal MUST
//! - report `Event::Durable { tag }` only after `fdatasync` returned success for that record and every one before it;
//! - give records dense, growing `Lsn`s from 1, in the order of submission, and yield them in that order when opened;
//! - accept a record only if space for it is allocated on disk: a full disk is a refusal ([`SubmitError::DiskFull`]),
//!   never a lost record;
//! - become final on the first write or sync error: nothing more is acknowledged, every submission is refused with
//!   [`SubmitError::Failed`]. A sync that failed is never tried again: the kernel may have dropped the dirty pages.
//! - distinguish a torn end (records never acknowledged) from damage (records acknowledged). A torn end is truncated.
//!   Damage is listed in [`Recovery::damages`], and the intact records around it are still yielded.
//!
//! The journal MUST NOT
//! - block a submitter, unless it asks for that ([`Submitter::commit_here`]): full buffers are refused
//!   ([`SubmitError::Busy`]) and followed by `Event::Room`;
//! - interpret kinds, heads or payloads, except [`record::KIND_MARK`], its own, which it yields like any other;
//! - release a segment of its own accord: only below the lsn given to [`Journal::release_before`].
//!
//! The caller MUST
//! - submit tags that never decrease, per submitter;
//! - handle events quickly: they are called on the journal's threads;
//! - read a [`Location`] only after its record is durable;
//! - treat `Event::Failed` as the end of persistent appends in this process.

mod buffer;
mod contents;
mod core;
mod direct;
mod disk;
mod errors;
mod events;
#[cfg(test)]
mod golden;
mod handle;
mod image;
mod janitor;
mod jobs;
mod open;
mod options;
mod pages;
mod queue;
pub mod record;
mod scan;
mod segment;
mod source;
mod submission;
mod walk;
mod writer;

pub use contents::{OwnerOf, Reach};
pub use direct::DirectFile;
pub use disk::{Faults, Operation, free_bytes};
pub use errors::{JournalReadError, OpenError, SubmitError};
pub use events::{Completion, Event};
pub use handle::{Journal, Sealed, SegmentSource, Stats, Submitter};
pub use image::Image;
pub use options::JournalOptions;
pub use pages::Pages;
pub use record::{JournalRecord, Location, Lsn, StoredRecord};
pub use scan::{Damage, End, Head, Recovery, Scanned, SegmentFile, Torn, scan};
pub use source::{Source, Window, read_around};
pub use submission::{Submission, Submitted};
pub use walk::{Step, Walk};
