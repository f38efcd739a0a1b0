//! Places of a group's batches on its server's disk.

use std::collections::VecDeque;
use std::ops::Range;

use quorate_journal::{Location, Lsn};
use quorate_types::Index;

/// Place of a batch's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Journal(Location),
    Log(quorate_group_log::LogLocation),
}

/// Places for which there is room at first.
const ROOM_MIN: usize = 4;
const _: () = assert!(
    size_of::<(Lsn, Place)>() * 9 / 8 <= 48,
    "a place fits what admission counts for it (`BATCH_MEMORY_BYTES`)"
);

/// Places of a group's batches from `first_index` on, in order of index and lsn; and its base.
#[derive(Debug, Default)]
pub struct Places {
    first_index: Index,
    batches: VecDeque<(Lsn, Place)>,
    /// The last base on disk: its index and its record.
    pub base: Option<(Index, Lsn)>,
}

impl Places {
    /// Notes a batch. A batch at a known index replaces the known one and all behind it.
    pub fn note(&mut self, index: Index, lsn: Lsn, place: Place) {
        if self.batches.is_empty() {
            self.first_index = index;
        }
        let Some(at) = index.checked_sub(self.first_index) else {
            return;
        };
        self.batches.truncate(at as usize);
        if self.batches.len() as u64 != at {
            // A gap: the log was reset to begin behind a base.
            self.batches.clear();
            self.first_index = index;
        }
        if self.batches.len() == self.batches.capacity() {
            // Doubling would hold twice the memory that admission counts (`BATCH_MEMORY_BYTES`).
            self.batches.reserve_exact(self.batches.len() / 8 + ROOM_MIN);
        }
        self.batches.push_back((lsn, place));
    }

    pub fn get(&self, index: Index) -> Option<(Lsn, Place)> {
        let at = index.checked_sub(self.first_index)?;
        self.batches.get(at as usize).copied()
    }

    /// The group's log has these records now. Records that were truncated or trimmed have no place to update.
    pub fn moved(&mut self, records: &[(Lsn, quorate_group_log::LogLocation)]) {
        for (lsn, place) in records {
            if let Ok(at) = self.batches.binary_search_by_key(lsn, |(lsn, _)| *lsn) {
                self.batches[at].1 = Place::Log(*place);
            }
        }
    }

    /// The batches that lie in the journal with these lsns.
    pub fn in_journal(&self, lsns: &Range<Lsn>) -> Vec<(Index, Lsn)> {
        let from = self.batches.partition_point(|(lsn, _)| *lsn < lsns.start);
        let found = self.batches.range(from..).zip(self.first_index + from as u64..);
        found
            .take_while(|((lsn, _), _)| *lsn < lsns.end)
            .filter(|((_, place), _)| matches!(place, Place::Journal(_)))
            .map(|((lsn, _), index)| (index, *lsn))
            .collect()
    }

    /// The batch whose record begins there.
    pub fn index_at(&self, file: u32, position: u32) -> Option<Index> {
        let is_there = |(_, place): &(Lsn, Place)| matches!(place, Place::Log(p) if (p.file, p.position) == (file, position));
        let at = self.batches.iter().position(is_there)?;
        Some(self.first_index + at as u64)
    }

    /// A base at `index` is durable: batches up to it are not needed.
    pub fn forget_through(&mut self, index: Index) {
        while self.first_index <= index && !self.batches.is_empty() {
            self.batches.pop_front();
            self.first_index += 1;
        }
    }

    /// The first record that the group needs.
    pub fn oldest_lsn(&self) -> Option<Lsn> {
        let first = self.batches.front().map(|(lsn, _)| *lsn);
        let base = self.base.map(|(_, lsn)| lsn);
        first.into_iter().chain(base).min()
    }
}
