//! One server's journal: the bytes that `quorate-journal` writes, on a simulated disk, and its scan of them. Records
//! are synced in runs; a crash keeps what was synced and, of the write under way, any of its pages.

mod image;
mod recover;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quorate_journal::record::{self, HEADER_BYTES, Header, Lsn, PAGE_BYTES, SegmentHead};
use quorate_types::{Epoch, GroupId, Index};
use quorate_wire::Batch;
use rand::Rng;
use rand::rngs::SmallRng;

pub use image::{Image, Places};
pub use recover::Found;

// As in `services/replica/src/disk.rs`.
const KIND_BATCH: u8 = 1;
const KIND_BASE: u8 = 2;
const KIND_DROPPED: u8 = 3;
const KIND_CUT: u8 = 4;
const KIND_TRIM: u8 = 5;

#[derive(Debug, Clone)]
pub enum Body {
    Batch(Batch),
    Base { base: Bytes, index: Index, epoch: Epoch },
    Cut { index: Index, number: u64 },
    Trim { index: Index },
    Dropped,
}

#[derive(Debug, Clone)]
struct Record {
    lsn: Lsn,
    group_id: GroupId,
    body: Body,
}

/// What the journal tells a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durable {
    pub group_id: GroupId,
    pub what: DurableWhat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurableWhat {
    Batch { index: Index, epoch: Epoch },
    Base { index: Index, epoch: Epoch },
    Cut { number: u64 },
    Trim { index: Index },
    Dropped,
}

#[derive(Debug)]
pub struct Disk {
    segment_bytes: usize,
    segments: VecDeque<Segment>,
    next_segment: u32,
    next_lsn: Lsn,
    durable_lsn: Lsn,
    pending: VecDeque<Record>,
    /// Of the pending ones, how many the running sync covers.
    pub syncing: usize,
    /// Where records lie that are on stable storage.
    placed: VecDeque<Placed>,
    /// First of the last write: damage to what was written before it is known for what it is.
    last_write_lsn: Lsn,
    places: BTreeMap<GroupId, Places>,
    /// Per group: what the synced records amount to, worked out apart from the code under test.
    pub images: BTreeMap<GroupId, Image>,
}

#[derive(Debug)]
struct Segment {
    number: u32,
    salt: u64,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Placed {
    lsn: Lsn,
    group_id: GroupId,
    segment: u32,
    position: usize,
    len: usize,
    index: Option<Index>,
    is_damaged: bool,
}

impl Disk {
    pub fn new(segment_bytes: usize) -> Self {
        Self {
            segment_bytes,
            segments: VecDeque::new(),
            next_segment: 1,
            next_lsn: 1,
            durable_lsn: 0,
            pending: VecDeque::new(),
            syncing: 0,
            placed: VecDeque::new(),
            last_write_lsn: 1,
            places: BTreeMap::new(),
            images: BTreeMap::new(),
        }
    }

    pub fn submit(&mut self, group_id: GroupId, body: Body) {
        let lsn = self.next_lsn;
        self.next_lsn += 1;
        if let Body::Batch(batch) = &body {
            self.places
                .entry(group_id)
                .or_default()
                .note(batch.header.index, lsn);
        }
        if matches!(body, Body::Dropped) {
            // What comes again is another group; the records of this one are kept until it is known to be dropped.
            let before = self.places.remove(&group_id).unwrap_or_default();
            self.places.insert(group_id, Places::behind(before.oldest_lsn()));
        }
        self.pending.push_back(Record { lsn, group_id, body });
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
    }

    /// The running sync is done: what the groups are told.
    pub fn complete(&mut self, merged: bool, rng: &mut SmallRng) -> Vec<Durable> {
        let mut told: Vec<Durable> = Vec::new();
        let covered: Vec<Record> = self.pending.drain(..std::mem::take(&mut self.syncing)).collect();
        let Some(first) = covered.first() else { return told };
        self.last_write_lsn = first.lsn;
        let all = covered.iter().chain(&self.pending);
        let drops: BTreeMap<GroupId, Lsn> = all
            .filter(|record| matches!(record.body, Body::Dropped))
            .map(|record| (record.group_id, record.lsn))
            .collect();
        for record in &covered {
            self.write(record, rng);
            self.keep(record);
            // As the server's port to the journal: who comes again is told nothing of what was before.
            if drops
                .get(&record.group_id)
                .is_some_and(|drop| record.lsn <= *drop)
            {
                continue;
            }
            let durable = Durable::of(record);
            let same = told.last().is_some_and(|last| {
                last.group_id == durable.group_id
                    && std::mem::discriminant(&last.what) == std::mem::discriminant(&durable.what)
            });
            if merged && same {
                told.pop();
            }
            told.push(durable);
        }
        self.durable_lsn = covered.last().expect("not empty").lsn;
        if covered.iter().any(|r| matches!(r.body, Body::Base { .. })) {
            self.free();
        }
        told
    }

    /// Puts the record's bytes behind the last.
    fn write(&mut self, record: &Record, rng: &mut SmallRng) {
        let (kind, head, payload) = record.body.parts(record.group_id);
        let stride = record::stride(head.len() + payload.len());
        let fits = |s: &Segment| s.bytes.len() + stride <= self.segment_bytes;
        if !self.segments.back().is_some_and(fits) {
            let (number, salt) = (self.next_segment, rng.random());
            self.next_segment += 1;
            let head = SegmentHead {
                segment: number,
                salt,
                first_lsn: record.lsn,
            };
            let bytes = head.encode();
            self.segments.push_back(Segment { number, salt, bytes });
        }
        let segment = self.segments.back_mut().expect("pushed above");
        let position = segment.bytes.len();
        let header = Header {
            body_len: (head.len() + payload.len()) as u32,
            lsn: record.lsn,
            segment: segment.number,
            unsynced: (record.lsn - self.durable_lsn) as u32,
            head_len: head.len() as u16,
            kind,
        };
        record::encode(&header, segment.salt, &head, &payload, &mut segment.bytes);
        self.placed.push_back(Placed {
            lsn: record.lsn,
            group_id: record.group_id,
            segment: segment.number,
            position,
            len: stride,
            index: match &record.body {
                Body::Batch(batch) => Some(batch.header.index),
                _ => None,
            },
            is_damaged: false,
        });
    }

    /// The record is on stable storage.
    fn keep(&mut self, record: &Record) {
        match &record.body {
            Body::Dropped => {
                self.images.remove(&record.group_id);
                if let Some(places) = self.places.get_mut(&record.group_id) {
                    places.base_lsn = places.base_lsn.filter(|base| *base > record.lsn);
                }
            }
            body => self.images.entry(record.group_id).or_default().apply(body),
        }
        if let Body::Base { index, .. } = record.body {
            let places = self.places.entry(record.group_id).or_default();
            places.forget_through(index);
            places.base_lsn = Some(record.lsn);
        }
    }

    /// Segments are freed whole, oldest first, as far as no group needs what they hold; never the newest.
    fn free(&mut self) {
        let needed = self.places.values().filter_map(Places::oldest_lsn).min();
        let needed = needed.unwrap_or(self.durable_lsn).min(self.durable_lsn);
        while let Some(next) = self.segments.get(1) {
            let first_lsn = SegmentHead::decode(&next.bytes).map_or(0, |head| head.first_lsn);
            if first_lsn == 0 || first_lsn > needed {
                return;
            }
            self.segments.pop_front();
            while self.placed.front().is_some_and(|p| p.lsn < first_lsn) {
                self.placed.pop_front();
            }
        }
    }

    /// A crash: of the write under way any pages are on the disk. Answers how many records were lost.
    pub fn crash(&mut self, rng: &mut SmallRng) -> usize {
        let lost = self.pending.len();
        let writing: Vec<Record> = self.pending.drain(..std::mem::take(&mut self.syncing)).collect();
        self.pending.clear();
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
        let begun = self.segments.back().map(|s| (s.number, s.bytes.len()));
        let placed_before = self.placed.len();
        let mut written = Vec::new();
        for record in writing {
            self.write(record, rng);
            // What lies in the next segment is written when the one before is synced.
            let segment = self.placed.back().expect("written").segment;
            if begun.is_none_or(|(number, _)| number != segment) {
                self.placed.pop_back();
                self.segments.pop_back();
                self.next_segment -= 1;
                break;
            }
            written.push(record);
        }
        let Some((_, from)) = begun.filter(|_| !written.is_empty()) else {
            return 0;
        };
        let lost = self.lose_pages(from, rng);
        let is_whole = |p: &Placed| {
            !lost
                .iter()
                .any(|page| page.start < p.position + p.len && p.position < page.end)
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

    /// Of the last segment's bytes from `from` on, the file system loses any pages.
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

    /// Flips a bit of a batch behind which its group has another. Damage to the very last write cannot be told from
    /// a torn end, and whose records the journal lost is only seen by the gap (`docs/internals/simulator.md`).
    /// Answers whose it was.
    pub fn flip(&mut self, rng: &mut SmallRng) -> Option<GroupId> {
        let has_later = |p: &Placed| {
            let is_batch = |q: &&Placed| q.group_id == p.group_id && q.index.is_some() && !q.is_damaged;
            let later = self.placed.iter().rev().find(is_batch);
            later.is_some_and(|q| q.lsn > p.lsn && q.index > p.index)
        };
        let fit: Vec<Placed> = self
            .placed
            .iter()
            .filter(|p| p.index.is_some() && p.lsn < self.last_write_lsn && has_later(p))
            .copied()
            .collect();
        let chosen = fit.get(rng.random_range(0..fit.len().max(1)))?;
        let at = self
            .placed
            .binary_search_by_key(&chosen.lsn, |p| p.lsn)
            .expect("it is there");
        self.placed[at].is_damaged = true;
        let segment = self.segments.iter_mut().find(|s| s.number == chosen.segment)?;
        // The padding behind a record may be flipped with impunity: keep to what is summed.
        let at = chosen.position + rng.random_range(0..HEADER_BYTES + 8);
        segment.bytes[at] ^= 1 << rng.random_range(0..8);
        Some(chosen.group_id)
    }

    /// The payload of the batch at `index`, from where it lies.
    pub fn payload(&self, id: GroupId, index: Index) -> Option<Bytes> {
        let lsn = self.places.get(&id)?.get(index)?;
        if let Some(record) = self.pending.iter().find(|r| r.lsn == lsn) {
            let Body::Batch(batch) = &record.body else {
                return None;
            };
            return Some(batch.payload.clone());
        }
        let at = self.placed.binary_search_by_key(&lsn, |p| p.lsn).ok()?;
        let placed = self.placed[at];
        let segment = self.segments.iter().find(|s| s.number == placed.segment)?;
        let (_, _, payload) = record::parse(&segment.bytes[placed.position..], segment.number, segment.salt)?;
        Some(Bytes::copy_from_slice(payload))
    }
}

impl Body {
    /// Kind, head and payload of its record.
    fn parts(&self, group_id: GroupId) -> (u8, Vec<u8>, Bytes) {
        let group = group_id.0.as_bytes().to_vec();
        let with_index = |index: &Index| [&group[..], &index.to_le_bytes()].concat();
        match self {
            Body::Batch(batch) => (KIND_BATCH, batch.header.encode().to_vec(), batch.payload.clone()),
            Body::Base { base, .. } => (KIND_BASE, group, base.clone()),
            Body::Cut { index, .. } => (KIND_CUT, with_index(index), Bytes::new()),
            Body::Trim { index } => (KIND_TRIM, with_index(index), Bytes::new()),
            Body::Dropped => (KIND_DROPPED, group, Bytes::new()),
        }
    }
}

impl Durable {
    fn of(record: &Record) -> Self {
        let what = match &record.body {
            Body::Batch(b) => DurableWhat::Batch {
                index: b.header.index,
                epoch: b.header.epoch,
            },
            Body::Base { index, epoch, .. } => DurableWhat::Base {
                index: *index,
                epoch: *epoch,
            },
            Body::Cut { number, .. } => DurableWhat::Cut { number: *number },
            Body::Trim { index } => DurableWhat::Trim { index: *index },
            Body::Dropped => DurableWhat::Dropped,
        };
        Self {
            group_id: record.group_id,
            what,
        }
    }
}
