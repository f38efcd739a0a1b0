//! One server's journal: the bytes that `quorate-journal` writes, on a simulated disk, and its scan of them. Records
//! are synced in runs; a crash keeps what was synced and, of the write under way, any of its pages.
//!
//! - [`image`]: the logs that the synced records amount to, computed without the code under test
//! - `crash`: torn writes; `damage`: bits and pages that go bad; `lie`: durable writes that are lost
//! - `reads`: records read and repaired while a server runs
//! - `recover`: a server's start

mod crash;
mod damage;
mod image;
mod lie;
mod reads;
mod recover;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quorate_journal::Location;
use quorate_journal::record::{self, HEADER_BYTES, Header, Lsn, SEGMENT_HEAD_BYTES, SegmentHead};
use quorate_recovery::record::{KIND_BASE, KIND_BATCH, KIND_DROPPED, KIND_REPAIRED};
use quorate_recovery::{Durable, GroupRecord, Place, Places};
use quorate_types::GroupId;
use rand::Rng;
use rand::rngs::SmallRng;

pub use image::Image;
pub use reads::Spot;

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
    /// First record of the last write. A scan can tell damage to earlier records from a torn write.
    last_write_lsn: Lsn,
    places: BTreeMap<GroupId, Places>,
    /// Places of dropped groups by their drop records, until these are on stable storage.
    dropping: BTreeMap<Lsn, Places>,
    /// The first record of each group on stable storage, since it was last dropped.
    born: BTreeMap<GroupId, Lsn>,
    /// The drop record that ended each group's earlier hosting.
    ended: BTreeMap<GroupId, Lsn>,
    /// Groups with a record that they are whole again, and no damage since.
    mended: BTreeSet<GroupId>,
    /// Damage that no start has found yet. A record that a group is whole says nothing of it.
    is_damage_unknown: bool,
    /// Per group: the log that the synced records amount to, computed without the code under test.
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
    group_id: GroupId,
    kind: u8,
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
            is_damage_unknown: false,
            images: BTreeMap::new(),
        }
    }

    /// Gives the record its place at once, as the journal's port does.
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

    /// Whether a drop record of the group is not on stable storage yet.
    pub fn is_dropping(&self, id: GroupId) -> bool {
        let is_drop = |r: &Record| r.entry.durable.group_id == id && r.entry.kind() == KIND_DROPPED;
        self.pending.iter().any(is_drop)
    }

    /// Bytes of records that the writer has not begun to write.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The writer's thread takes all pending records, or the first ones.
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

    /// The running sync is done. Answers the completions for the groups.
    pub fn complete(&mut self, merged: bool, rng: &mut SmallRng) -> Vec<Durable> {
        let mut completions: Vec<Durable> = Vec::new();
        let covered: Vec<Record> = self.pending.drain(..std::mem::take(&mut self.syncing)).collect();
        let Some(first) = covered.first() else {
            return completions;
        };
        self.last_write_lsn = first.lsn;
        for record in &covered {
            self.write(record, rng);
            self.keep(record);
            // A record of a group that was dropped behind it is nobody's, as in `services/replica/src/journal_port.rs`.
            let durable = record.entry.durable;
            let is_drop = |r: &Record| {
                r.lsn > record.lsn
                    && r.entry.durable.group_id == durable.group_id
                    && r.entry.kind() == KIND_DROPPED
            };
            if covered.iter().chain(&self.pending).any(is_drop) {
                continue;
            }
            if durable.kind == KIND_BASE {
                self.forget_behind(record);
            }
            if merged {
                durable.note(&mut completions);
            } else {
                completions.push(durable);
            }
        }
        self.durable_lsn = covered.last().expect("not empty").lsn;
        if covered.iter().any(|r| r.entry.kind() == KIND_BASE) {
            self.free();
        }
        completions
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
            group_id: entry.durable.group_id,
            kind: entry.kind(),
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
        if durable.kind == KIND_REPAIRED && !image.is_damaged() && !self.is_damage_unknown {
            self.mended.insert(id);
        }
        self.born.entry(id).or_insert(record.lsn);
    }

    /// Behind a durable base nothing older is needed.
    fn forget_behind(&mut self, base: &Record) {
        let durable = &base.entry.durable;
        let places = self.places.entry(durable.group_id).or_default();
        places.forget_through(durable.index);
        places.base = Some((durable.index, base.lsn));
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

    pub fn wipe(&mut self) {
        *self = Disk::new(self.segment_bytes);
    }
}
