//! Crashes: any pages of the write under way are on the disk afterwards.

use quorate_journal::Location;
use quorate_journal::record::{self, HEADER_BYTES, PAGE_BYTES};
use rand::Rng;
use rand::rngs::SmallRng;

use super::{Disk, Placed, Record};

impl Disk {
    /// Crashes the disk's server. Answers the number of records that were lost.
    pub fn crash(&mut self, rng: &mut SmallRng) -> usize {
        let lost = self.pending.len();
        let writing: Vec<Record> = self.pending.drain(..std::mem::take(&mut self.syncing)).collect();
        self.pending.clear();
        self.waiting_bytes = 0;
        let kept = if writing.is_empty() {
            0
        } else {
            self.tear(&writing, rng)
        };
        self.next_lsn = self.durable_lsn + 1;
        lost - kept
    }

    /// Writes the records as far as the crash lets it. Answers the number of whole ones, from the first.
    fn tear(&mut self, writing: &[Record], rng: &mut SmallRng) -> usize {
        let Some((number, from)) = self.segments.back().map(|s| (s.number, s.bytes.len())) else {
            return 0;
        };
        // Records in the next segment are written when the one before is synced.
        let is_here = |record: &&Record| record.location.segment == number;
        let written: Vec<&Record> = writing.iter().take_while(is_here).collect();
        if written.is_empty() {
            return 0;
        }
        let placed_before = self.placed.len();
        for record in &written {
            self.write(record, rng);
        }
        let lost = self.lose_pages(from, rng);
        let is_whole = |p: &Placed| {
            let (start, end) = range(p.location);
            !lost.iter().any(|page| page.start < end && start < page.end)
        };
        let whole = self
            .placed
            .iter()
            .skip(placed_before)
            .take_while(|p| is_whole(p))
            .count();
        for record in &written[..whole] {
            self.keep(record);
            self.durable_lsn = record.lsn;
        }
        self.placed.truncate(placed_before + whole);
        if whole > 0 {
            self.last_write_lsn = written[0].lsn;
        }
        whole
    }

    /// Loses any pages of the last segment from `from` on, as a file system may.
    fn lose_pages(&mut self, from: usize, rng: &mut SmallRng) -> Vec<std::ops::Range<usize>> {
        let share = [0.0, 0.2, 0.5, 1.0][rng.random_range(0..4)];
        let bytes = &mut self.segments.back_mut().expect("written to").bytes;
        let mut lost = Vec::new();
        let mut at = from;
        while at < bytes.len() {
            let end = ((at + 1).next_multiple_of(PAGE_BYTES as usize)).min(bytes.len());
            // A sector at a time, within a page, when only one is written.
            let end = end.min((at + 1).next_multiple_of(512));
            // Zeros are there beforehand: to lose them is to lose nothing.
            if rng.random_bool(share) {
                lost.extend((at..end).filter(|at| bytes[*at] != 0).map(|at| at..at + 1));
                bytes[at..end].fill(0);
            }
            at = end;
        }
        lost
    }
}

/// The record's bytes in its segment, with their padding.
fn range(location: Location) -> (usize, usize) {
    let start = location.position as usize;
    (
        start,
        start + record::stride(location.len as usize - HEADER_BYTES),
    )
}
