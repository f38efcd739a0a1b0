//! Damage to stable storage: a bit, or whole pages.

use std::collections::BTreeSet;

use quorate_journal::record::{self, HEADER_BYTES, Lsn, PAGE_BYTES, SegmentHead};
use rand::Rng;
use rand::rngs::SmallRng;

use super::{Disk, Placed, Segment};

impl Disk {
    /// Flips a bit of any durable record, or loses pages. Leaves alone the records whose damage looks like a write
    /// that a crash tore (`docs/internals/journal.md`). Answers the records that cannot be read any more.
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
        let new: Vec<Lsn> = damaged.difference(&self.damaged).copied().collect();
        self.damaged = damaged;
        if !new.is_empty() {
            self.mended.clear();
            self.is_damage_unknown = true;
        }
        new
    }

    fn segment_at(&self, placed: Placed) -> usize {
        let number = placed.location.segment;
        let at = self.segments.iter().position(|s| s.number == number);
        at.expect("its segment is there")
    }

    pub(super) fn unreadable(&self) -> BTreeSet<Lsn> {
        let is_unreadable = |p: &&Placed| {
            let segment = &self.segments[self.segment_at(**p)];
            let bytes = &segment.bytes[p.location.position as usize..];
            let parsed = record::parse(bytes, segment.number, segment.salt);
            !segment.has_head() || parsed.is_none_or(|(header, ..)| header.lsn != p.lsn)
        };
        self.placed.iter().filter(is_unreadable).map(|p| p.lsn).collect()
    }

    /// Whether a scan can tell the damage from a torn write. Behind each hole it needs a record that was written when the
    /// missing ones were durable already, or a later segment. A last segment without heads looks as if it had never been
    /// started, and a first one as if it had been released.
    fn is_known_for_damage(&self, damaged: &BTreeSet<Lsn>, at: usize) -> bool {
        let is_at_an_end = at == 0 || at + 1 == self.segments.len();
        if is_at_an_end && !self.segments[at].has_head() || damaged.contains(&self.durable_lsn) {
            return false;
        }
        // A hole that begins in the last write is a torn end, unless a segment was begun behind it. Repairs are made one by
        // one, so that a hole may come to begin with any of its records.
        let last_segment_lsn = self.segments.back().expect("there are some").first_lsn;
        let known_before = last_segment_lsn.max(self.last_write_lsn);
        damaged.iter().all(|lsn| *lsn < known_before)
    }

    pub(super) fn first_lsn(&self) -> Lsn {
        self.segments.front().map_or(1, |segment| segment.first_lsn)
    }
}

impl Segment {
    fn has_head(&self) -> bool {
        SegmentHead::decode(&self.bytes).is_some_and(|head| head.segment == self.number)
    }
}
