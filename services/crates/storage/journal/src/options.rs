//! Options of a journal.

use std::sync::Arc;
use std::time::Duration;

use quorate_types::limits;

use crate::contents::OwnerOf;
use crate::disk::Faults;
use crate::errors::OpenError;
use crate::record::{self, Lsn};

/// How the journal uses its directory.
#[derive(Clone)]
pub struct JournalOptions {
    /// Size of one segment file, a multiple of 4096.
    pub segment_bytes: u64,
    /// Most bytes submitted and not yet synced.
    pub buffer_bytes_max: usize,
    /// Released segments kept for reuse; more are deleted.
    pub spare_segments_max: usize,
    /// Bytes at the end of the prepared space that only [`crate::Submission::reserved`] records may use.
    pub reserve_bytes: u64,
    /// The first record's number, if the directory holds none yet.
    pub first_lsn: Lsn,
    /// After this time without submissions, and when it closes, the journal appends a mark: all before it is durable.
    /// A mark tells damage to the last records from a torn end. `None`: no marks.
    pub mark_after: Option<Duration>,
    /// Names a record's owner. With it, each full segment lists its owners ([`crate::Sealed::reaches`]).
    pub owner_of: Option<OwnerOf>,
    /// For tests: called before each operation on the disk, may make it fail.
    pub faults: Option<Arc<dyn Faults>>,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            segment_bytes: limits::JOURNAL_SEGMENT_BYTES,
            buffer_bytes_max: limits::JOURNAL_BUFFER_BYTES_MAX,
            // As many as may wait for the group logs: in steady use no segment is filled with zeros again.
            spare_segments_max: 8,
            reserve_bytes: 1 << 20,
            first_lsn: 1,
            mark_after: Some(Duration::from_secs(1)),
            owner_of: None,
            faults: None,
        }
    }
}

impl JournalOptions {
    /// Longest head plus payload of one record, in bytes.
    pub fn body_bytes_max(&self) -> usize {
        let in_segment = self.segment_bytes - record::SEGMENT_HEAD_BYTES - record::HEADER_BYTES as u64;
        (in_segment as usize).min(self.buffer_bytes_max - record::HEADER_BYTES)
    }

    pub(crate) fn validate(&self) -> Result<(), OpenError> {
        let least = record::SEGMENT_HEAD_BYTES + self.reserve_bytes + 4096;
        let sound = self.segment_bytes.is_multiple_of(4096)
            && self.segment_bytes > least
            && self.segment_bytes <= u64::from(u32::MAX)
            && self.buffer_bytes_max > record::HEADER_BYTES;
        if sound { Ok(()) } else { Err(OpenError::Options) }
    }
}
