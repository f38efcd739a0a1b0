//! Segments due for copying.

use std::collections::BTreeMap;
use std::time::Instant;

use quorate_journal::{Journal, Lsn, Sealed};

use crate::options::GroupLogOptions;

/// The time since which each full segment, by its first lsn, has been waiting.
#[derive(Default)]
pub(crate) struct Due {
    waiting_since: BTreeMap<Lsn, Instant>,
}

impl Due {
    /// Number of full segments to copy now, from the oldest on: all, if the journal has no space left.
    pub fn count(&mut self, options: &GroupLogOptions, journal: &Journal, sealed: &[Sealed]) -> usize {
        let now = Instant::now();
        let before = std::mem::take(&mut self.waiting_since);
        self.waiting_since = sealed
            .iter()
            .map(|segment| segment.first_lsn)
            .map(|lsn| (lsn, before.get(&lsn).copied().unwrap_or(now)))
            .collect();
        let is_old = |since: &&Instant| now.duration_since(**since) >= options.keep_for;
        let old = self.waiting_since.values().take_while(is_old).count();
        if journal.is_disk_full() {
            return sealed.len();
        }
        old.max(sealed.len().saturating_sub(options.keep_segments))
    }
}
