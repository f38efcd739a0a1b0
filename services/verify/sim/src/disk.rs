//! One server's journal: the bytes that `quorate-journal` writes, on a simulated disk, and its scan of them. Records
//! are synced in runs; a crash keeps what was synced and, of the write under way, any of its pages.
//!
//! - [`image`]: what the synced records amount to, worked out apart from the code under test
//! - `damage`: bits and pages that go bad
//! - `reads`: what is read, and repaired, while a server runs
//! - `recover`: a server's start

mod damage;
mod image;
mod reads;
mod recover;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quorate_journal::Location;
use quorate_journal::record::{self, HEADER_BYTES, Header, Lsn, PAGE_BYTES, SEGMENT_HEAD_BYTES, SegmentHead};
use quorate_recovery::record::{KIND_BASE, KIND_BATCH, KIND_DROPPED, KIND_REPAIRED};
use quorate_recovery::{Durable, GroupRecord, Place, Places};
use quorate_types::GroupId;
use rand::Rng;
use rand::rngs::SmallRng;

pub use image::Image;
pub use reads::Spot;
pub use recover::Held;

#[derive(Debug, Clone)]
struct Record {
    lsn: Lsn,
    location: Location,
    entry: GroupRecord,
}

#[derive(Debug)]
pub struct Disk {
    segment_bytes: usize,
    segments: VecDeque<Segment>,
    /// The place of the next record: segment and position.
    end: (u32, usize),
    next_lsn: Lsn,
    durable_lsn: Lsn,
    pending: VecDeque<Record>,
    /// The number of pending records that the running sync covers.
    pub syncing: usize,
    waiting_bytes: usize,
    /// The places of records on stable storage.
    placed: VecDeque<Placed>,
    /// Records on stable storage that cannot be read any more.
    damaged: BTreeSet<Lsn>,
    /// First of the last write: damage to what was written before it is known for what it is.
    last_write_lsn: Lsn,
    places: BTreeMap<GroupId, Places>,
    /// Places of groups that the record of this number drops, until that record is on stable storage.
    dropping: BTreeMap<Lsn, Places>,
    /// The first record of each group on stable storage, since it was last dropped.
    born: BTreeMap<GroupId, Lsn>,
    /// The note that ended each group's life before this one.
    ended: BTreeMap<GroupId, Lsn>,
    /// Groups that were said to be whole again, and nothing has gone bad since.
    mended: BTreeSet<GroupId>,
    /// Per group: what the synced records amount to, worked out apart from the code under test.
    pub images: BTreeMap<GroupId, Image>,
}

#[derive(Debug)]
struct Segment {
    number: u32,
    salt: u64,
    first_lsn: Lsn,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Placed {
    lsn: Lsn,
    location: Location,
    /// The checksum of its head as it was written: a repair must write the same.
    head_crc: u32,
}

impl Disk {
    pub fn new(segment_bytes: usize) -> Self {
        Self {
            segment_bytes,
            segments: VecDeque::new(),
            end: (0, segment_bytes),
            next_lsn: 1,
            durable_lsn: 0,
            pending: VecDeque::new(),
            syncing: 0,
            waiting_bytes: 0,
            placed: VecDeque::new(),
            damaged: BTreeSet::new(),
            last_write_lsn: 1,
            places: BTreeMap::new(),
            dropping: BTreeMap::new(),
            born: BTreeMap::new(),
            ended: BTreeMap::new(),
            mended: BTreeSet::new(),
            images: BTreeMap::new(),
        }
    }

    /// As the journal's port does it: a record has its place when it is taken.
    pub fn submit(&mut self, entry: GroupRecord) {
        let len = HEADER_BYTES + entry.bytes();
        let stride = record::stride(entry.bytes());
        if self.end.1 + stride > self.segment_bytes {
            self.end = (self.end.0 + 1, SEGMENT_HEAD_BYTES as usize);
        }
        let location = Location {
            segment: self.end.0,
            position: self.end.1 as u32,
            len: len as u32,
        };
        self.end.1 += stride;
        let lsn = self.next_lsn;
        self.next_lsn += 1;
        if entry.kind() == KIND_DROPPED {
            let places = self.places.remove(&entry.durable.group_id);
            self.dropping.extend(places.map(|places| (lsn, places)));
        }
        if entry.kind() == KIND_BATCH {
            let places = self.places.entry(entry.durable.group_id).or_default();
            places.note(entry.durable.index, lsn, Place::Journal(location));
        }
        self.waiting_bytes += entry.bytes();
        self.pending.push_back(Record { lsn, location, entry });
    }

    /// The note that the group was dropped is not on stable storage yet.
    pub fn is_dropping(&self, id: GroupId) -> bool {
        let is_note = |r: &Record| r.entry.durable.group_id == id && r.entry.kind() == KIND_DROPPED;
        self.pending.iter().any(is_note)
    }

    /// Bytes of records that the writer has not begun to write.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The writer's thread takes what is there when it comes to it.
    pub fn begin_sync(&mut self, rng: &mut SmallRng) {
        let all = self.pending.len();
        self.syncing = if rng.random_bool(0.7) {
            all
        } else {
            rng.random_range(1..=all)
        };
        let waiting = self.pending.iter().skip(self.syncing);
        self.waiting_bytes = waiting.map(|record| record.entry.bytes()).sum();
    }

    /// The running sync is done: what the groups are told.
    pub fn complete(&mut self, merged: bool, rng: &mut SmallRng) -> Vec<Durable> {
        let mut told: Vec<Durable> = Vec::new();
        let covered: Vec<Record> = self.pending.drain(..std::mem::take(&mut self.syncing)).collect();
        let Some(first) = covered.first() else { return told };
        self.last_write_lsn = first.lsn;
        for record in &covered {
            self.write(record, rng);
            self.keep(record);
            // A record of a group that was dropped behind it is nobody's, as in `services/replica/src/disk.rs`.
            let durable = record.entry.durable;
            let is_drop = |r: &Record| {
                r.lsn > record.lsn
                    && r.entry.durable.group_id == durable.group_id
                    && r.entry.kind() == KIND_DROPPED
            };
            if covered.iter().chain(&self.pending).any(is_drop) {
                continue;
            }
            if merged {
                durable.note(&mut told);
            } else {
                told.push(durable);
            }
        }
        self.durable_lsn = covered.last().expect("not empty").lsn;
        if covered.iter().any(|r| r.entry.kind() == KIND_BASE) {
            self.free();
        }
        told
    }

    /// Puts the record's bytes behind the last.
    fn write(&mut self, record: &Record, rng: &mut SmallRng) {
        let Record { lsn, location, entry } = record;
        if self.segments.back().is_none_or(|s| s.number != location.segment) {
            let (number, salt, first_lsn) = (location.segment, rng.random(), *lsn);
            let head = SegmentHead {
                segment: number,
                salt,
                first_lsn,
            };
            self.segments.push_back(Segment {
                number,
                salt,
                first_lsn,
                bytes: head.encode(),
            });
        }
        let segment = self.segments.back_mut().expect("pushed above");
        assert_eq!(
            segment.bytes.len(),
            location.position as usize,
            "records follow one another"
        );
        let header = Header {
            body_len: entry.bytes() as u32,
            lsn: *lsn,
            segment: segment.number,
            unsynced: (lsn - self.durable_lsn) as u32,
            head_len: entry.head.len() as u16,
            kind: entry.kind(),
        };
        record::encode(
            &header,
            segment.salt,
            &entry.head,
            &entry.payload,
            &mut segment.bytes,
        );
        self.placed.push_back(Placed {
            lsn: *lsn,
            location: *location,
            head_crc: crc32fast::hash(&entry.head),
        });
    }

    /// The record is on stable storage.
    fn keep(&mut self, record: &Record) {
        let durable = &record.entry.durable;
        let id = durable.group_id;
        if durable.kind == KIND_DROPPED {
            self.images.remove(&id);
            self.dropping.remove(&record.lsn);
            self.born.remove(&id);
            self.ended.insert(id, record.lsn);
            self.mended.remove(&id);
            return;
        }
        let image = self.images.entry(id).or_default();
        image.apply(&record.entry);
        if durable.kind == KIND_REPAIRED && !image.is_damaged() {
            self.mended.insert(id);
        }
        self.born.entry(id).or_insert(record.lsn);
        if durable.kind == KIND_BASE {
            let places = self.places.entry(id).or_default();
            places.forget_through(durable.index);
            places.base = Some((durable.index, record.lsn));
        }
    }

    /// Segments are freed whole, oldest first, as far as no group needs what they hold; never the newest.
    fn free(&mut self) {
        let places = self.places.values().chain(self.dropping.values());
        let needed = places.filter_map(Places::oldest_lsn).min();
        let needed = needed.unwrap_or(self.durable_lsn).min(self.durable_lsn);
        while let Some(next) = self.segments.get(1) {
            let first_lsn = next.first_lsn;
            if first_lsn > needed {
                return;
            }
            self.segments.pop_front();
            while self.placed.front().is_some_and(|p| p.lsn < first_lsn) {
                self.placed.pop_front();
            }
            self.damaged = self.damaged.split_off(&first_lsn);
        }
    }

    /// A crash: of the write under way any pages are on the disk. Answers how many records were lost.
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

    /// Writes the records as far as the crash lets it; answers how many are whole, from the first.
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

    pub fn wipe(&mut self) {
        *self = Disk::new(self.segment_bytes);
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
