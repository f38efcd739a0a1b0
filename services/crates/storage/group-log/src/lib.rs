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
//! The journal stays at a few segments whatever groups retain, a group's entries lie together, and trimming frees
//! whole files. Bytes: `docs/internals/group-logs.md`.
//!
//! # Contract
//!
//! - The group log is the authority for records up to [`Opened::copied_lsn`], the journal for later ones. The manifest
//!   states the bound and is replaced atomically; after a crash at any point a copy pass is repeated, at most.
//! - Everything that the manifest covers was synced: an unreadable part of it is damage, and reported, never truncated.
//! - Records are copied unchanged, truncations too; a reader takes them in order, as from the journal.
//! - The group logs alone release journal segments, and only up to the last record copied.
//! - A full or failing device stops the copying, is reported ([`Event::Stalled`]), and is tried again; the journal
//!   holds the records that are not copied.
//!
//! The caller MUST
//! - open the group logs before the journal, skip the journal's records up to `copied_lsn`, and then start;
//! - answer [`Event::Lost`] and [`Event::Damaged`] within a bounded time, if only with nothing;
//! - ask to trim only behind a base that is durable.

mod copy;
mod core;
#[cfg(test)]
mod crash;
mod disk;
mod errors;
mod events;
mod format;
#[cfg(test)]
mod golden;
mod group_files;
mod groups;
mod handle;
mod jobs;
mod manifest;
mod open;
mod options;
#[cfg(test)]
mod rig;
mod scrub;
#[cfg(test)]
mod tests;
mod walk;
mod worker;

pub use errors::{GroupLogReadError, OpenError};
pub use events::{Answer, Event, Rescued};
pub use format::LogLocation;
pub use handle::{GroupLogs, Stats};
pub use open::{Found, Opened};
pub use options::{Classify, GroupLogOptions, Meaning};
/// A record read back, from here as from the journal.
pub use quorate_journal::StoredRecord;
