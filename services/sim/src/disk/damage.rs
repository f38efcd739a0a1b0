//! What is on stable storage goes bad: a bit, or whole pages.

use quorate_journal::record::{self, HEADER_BYTES, Lsn, PAGE_BYTES};
use rand::Rng;
use rand::rngs::SmallRng;

use super::{Disk, Placed};

impl Disk {
    /// Flips a bit of any durable record, or loses pages. What cannot be told from a write that was cut short by a
    /// crash (`docs/internals/journal.md`) is left alone. Answers which records cannot be read any more.
    pub fn damage(&mut self, rng: &mut SmallRng) -> Vec<Lsn> {
        let count = self.segments.len();
        if count == 0 || self.placed.is_empty() {
            return Vec::new();
        }
        let (at, from, to) = if rng.random_bool(0.6) {
            let chosen = self.placed[rng.random_range(0..self.placed.len())];
            let at = self.segment_at(chosen);
            // The padding behind a record may be flipped with impunity: keep to what is summed.
            let position = chosen.location.position as usize + rng.random_range(0..HEADER_BYTES + 8);
            (at, position, position + 1)
        } else {
            let at = rng.random_range(0..count);
            let page = PAGE_BYTES as usize;
            let pages = self.segments[at].bytes.len().div_ceil(page);
            let first = rng.random_range(0..pages);
            let lost = rng.random_range(1..=4).min(pages - first);
            let end = ((first + lost) * page).min(self.segments[at].bytes.len());
            (at, first * page, end)
        };
        let bytes = &mut self.segments[at].bytes;
        let before = bytes[from..to].to_vec();
        if to - from == 1 {
            bytes[from] ^= 1 << rng.random_range(0..8);
        } else {
            bytes[from..to].fill(0);
        }
        let damaged = self.unreadable();
        if !self.is_known_for_damage(&damaged, at) {
            self.segments[at].bytes[from..to].copy_from_slice(&before);
            return Vec::new();
        }
        let new = damaged.difference(&self.damaged).copied().collect();
        self.damaged = damaged;
        new
    }

    fn segment_at(&self, placed: Placed) -> usize {
        let number = placed.location.segment;
        let at = self.segments.iter().position(|s| s.number == number);
        at.expect("its segment is there")
    }

    fn unreadable(&self) -> std::collections::BTreeSet<Lsn> {
        let is_unreadable = |p: &&Placed| {
            let segment = &self.segments[self.segment_at(**p)];
            let bytes = &segment.bytes[p.location.position as usize..];
            let parsed = record::parse(bytes, segment.number, segment.salt);
            parsed.is_none_or(|(header, ..)| header.lsn != p.lsn)
        };
        self.placed.iter().filter(is_unreadable).map(|p| p.lsn).collect()
    }

    /// Whether a scan can know it: behind each hole there is a record that was written when what is missing was durable
    /// already, or a later segment. And a segment whose heads are both gone is not the last.
    fn is_known_for_damage(&self, damaged: &std::collections::BTreeSet<Lsn>, at: usize) -> bool {
        let is_last = at + 1 == self.segments.len();
        let has_head = record::SegmentHead::decode(&self.segments[at].bytes)
            .is_some_and(|head| head.segment == self.segments[at].number);
        if is_last && !has_head {
            return false;
        }
        let last_segment_lsn = self.segments.back().expect("there are some").first_lsn;
        let mut known_from = last_segment_lsn;
        if let Some(last) = self.placed.back()
            && (self.last_write_lsn..=last.lsn).any(|lsn| !damaged.contains(&lsn))
        {
            known_from = known_from.max(self.last_write_lsn);
        }
        // A hole that begins in the last write is a torn end.
        let begins = damaged.iter().filter(|lsn| !damaged.contains(&(**lsn - 1)));
        let mut begins = begins.map(|lsn| (*lsn).max(self.first_lsn()));
        begins.all(|lsn| lsn < known_from) && self.is_end_whole(damaged)
    }

    fn first_lsn(&self) -> Lsn {
        self.segments.front().map_or(1, |segment| segment.first_lsn)
    }

    /// The very last record is sound: a hole at the end is no hole.
    fn is_end_whole(&self, damaged: &std::collections::BTreeSet<Lsn>) -> bool {
        !damaged.contains(&self.durable_lsn)
    }
}
