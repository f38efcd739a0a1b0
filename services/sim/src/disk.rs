//! One server's journal: records in order, synced in runs. A crash keeps what was synced and, of the rest, a prefix.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quorate_chain::{Base, Replica};
use quorate_types::{Durability, Epoch, GroupId, Index, ServerId};
use quorate_wire::{Batch, BatchHeader};
use rand::Rng;
use rand::rngs::SmallRng;

#[derive(Debug, Clone)]
pub struct Record {
    pub group_id: GroupId,
    pub body: Body,
    /// A bit of it was flipped: reading it finds a wrong checksum.
    pub is_damaged: bool,
}

#[derive(Debug, Clone)]
pub enum Body {
    Batch(Batch),
    Base { base: Bytes, index: Index, epoch: Epoch },
    Cut { index: Index, number: u64 },
    Dropped,
}

/// What the journal tells a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durable {
    pub group_id: GroupId,
    pub what: DurableWhat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurableWhat {
    Record { index: Index, epoch: Epoch },
    Cut { number: u64 },
    Dropped,
}

#[derive(Debug, Default)]
pub struct Disk {
    synced: Vec<Record>,
    pending: VecDeque<Record>,
    /// Of the pending ones, how many the running sync covers.
    pub syncing: usize,
    /// Per group: what the synced records amount to, worked out apart from the code under test.
    pub images: BTreeMap<GroupId, Image>,
}

/// The epochs of the batches behind a base.
#[derive(Debug, Default, Clone)]
pub struct Image {
    base: Index,
    epochs: VecDeque<Epoch>,
}

impl Image {
    fn apply(&mut self, body: &Body) {
        match body {
            Body::Batch(batch) => {
                self.truncate(batch.header.index - 1);
                assert_eq!(
                    batch.header.index,
                    self.last() + 1,
                    "the journal is given a dense log"
                );
                self.epochs.push_back(batch.header.epoch);
            }
            Body::Cut { index, .. } => self.truncate(*index),
            Body::Base { index, epoch, .. } => {
                if *index >= self.base && self.epoch_at(*index) == Some(*epoch) {
                    self.epochs.drain(..(*index - self.base) as usize);
                } else {
                    self.epochs.clear();
                }
                self.base = *index;
            }
            Body::Dropped => unreachable!("a dropped group has no image"),
        }
    }

    fn truncate(&mut self, index: Index) {
        if index == 0 {
            self.base = 0;
        }
        assert!(
            index >= self.base,
            "a cut to {index} below the base {}",
            self.base
        );
        self.epochs.truncate((index - self.base) as usize);
    }

    pub fn last(&self) -> Index {
        self.base + self.epochs.len() as u64
    }

    fn epoch_at(&self, index: Index) -> Option<Epoch> {
        self.epochs
            .get(index.checked_sub(self.base + 1)? as usize)
            .copied()
    }

    /// Whether it has the batch that `epoch` ordered at `index`; a trimmed one was committed.
    pub fn has(&self, index: Index, epoch: Epoch) -> bool {
        index <= self.base || self.epoch_at(index) == Some(epoch)
    }
}

/// What a server finds on its disk when it starts.
#[derive(Debug, Default)]
pub struct Found {
    pub groups: BTreeMap<GroupId, Replica>,
    /// Groups of whose log a part is missing.
    pub damaged: Vec<GroupId>,
}

impl Disk {
    pub fn submit(&mut self, group_id: GroupId, body: Body) {
        self.pending.push_back(Record {
            group_id,
            body,
            is_damaged: false,
        });
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
        for _ in 0..std::mem::take(&mut self.syncing) {
            let record = self
                .pending
                .pop_front()
                .expect("a sync covers what was submitted");
            let durable = Durable::of(&record);
            let same = told.last().is_some_and(|last| {
                last.group_id == durable.group_id
                    && std::mem::discriminant(&last.what) == std::mem::discriminant(&durable.what)
            });
            if merged && same {
                told.pop();
            }
            told.push(durable);
            self.keep(record, rng);
        }
        told
    }

    fn keep(&mut self, record: Record, rng: &mut SmallRng) {
        match &record.body {
            Body::Dropped => {
                self.images.remove(&record.group_id);
            }
            body => self.images.entry(record.group_id).or_default().apply(body),
        }
        let is_base = matches!(record.body, Body::Base { .. });
        self.synced.push(record);
        if is_base {
            self.free(rng);
        }
    }

    /// Segments are freed whole, oldest first, as far as no group needs what they hold.
    fn free(&mut self, rng: &mut SmallRng) {
        let needed = self.images.iter().map(|(id, image)| self.oldest_needed(*id, image));
        let needed = needed.min().unwrap_or(0);
        let freed = rng.random_range(0..=needed);
        self.synced.drain(..freed);
    }

    fn oldest_needed(&self, group_id: GroupId, image: &Image) -> usize {
        let first_needed = image.base + 1;
        let of_group = |r: &&Record| r.group_id == group_id;
        let newest_base = self
            .synced
            .iter()
            .rposition(|r| of_group(&r) && matches!(r.body, Body::Base { .. }));
        let oldest_batch = if image.last() < first_needed {
            None
        } else {
            self.synced.iter().rposition(|r| {
                of_group(&r) && matches!(&r.body, Body::Batch(b) if b.header.index == first_needed)
            })
        };
        newest_base.into_iter().chain(oldest_batch).min().unwrap_or(0)
    }

    /// A crash: of what was not synced, the first so many records are on the disk nevertheless. Answers how many
    /// were lost.
    pub fn crash(&mut self, rng: &mut SmallRng) -> usize {
        let survives = rng.random_range(0..=self.pending.len());
        for _ in 0..survives {
            let record = self.pending.pop_front().expect("counted");
            self.keep(record, rng);
        }
        let lost = self.pending.len();
        self.pending.clear();
        self.syncing = 0;
        lost
    }

    pub fn wipe(&mut self) {
        *self = Disk::default();
    }

    /// Flips a bit of a synced record, but of the last: that cannot be told from a torn end
    /// (`docs/internals/journal.md`). Answers whose it was.
    pub fn flip(&mut self, rng: &mut SmallRng) -> Option<GroupId> {
        let candidates = self.synced.len().checked_sub(1).filter(|n| *n > 0)?;
        let record = &mut self.synced[rng.random_range(0..candidates)];
        record.is_damaged = true;
        Some(record.group_id)
    }

    /// Reads the journal as `services/replica` does at its start.
    pub fn recover(&self, me: ServerId) -> Found {
        let mut found = Found::default();
        let group = |groups: &mut BTreeMap<GroupId, Replica>, id| {
            groups
                .entry(id)
                .or_insert_with(|| Replica::new(me, Durability::Persistent));
        };
        for record in self.synced.iter().filter(|r| !r.is_damaged) {
            let id = record.group_id;
            if !matches!(record.body, Body::Dropped) {
                group(&mut found.groups, id);
            }
            let Some(replica) = found.groups.get_mut(&id) else {
                continue;
            };
            match &record.body {
                Body::Batch(batch) => replica.recover(reread(batch)),
                Body::Base { base, .. } => replica.recover_base(Base::decode(base).expect("a base")),
                Body::Cut { index, .. } => replica.recover_cut(*index),
                Body::Dropped => {
                    found.groups.remove(&id);
                }
            }
        }
        for (id, replica) in &mut found.groups {
            if replica.recovered_all().is_err() {
                found.damaged.push(*id);
            }
        }
        found
    }

    /// What is recovered is what the synced records amount to.
    pub fn check_recovered(&self, id: GroupId, replica: &Replica) {
        let image = self.images.get(&id).cloned().unwrap_or_default();
        let log = replica.log();
        assert_eq!(
            log.last_index(),
            image.last(),
            "recovered another log than the journal holds"
        );
        for index in log.first_index()..=log.last_index() {
            assert_eq!(
                log.epoch_at(index),
                image.epoch_at(index).or(log.epoch_at(index).filter(|_| index <= image.base)),
                "recovered another batch at {index}"
            );
        }
    }

    pub fn is_damaged(&self, id: GroupId) -> bool {
        self.synced.iter().any(|r| r.is_damaged && r.group_id == id)
    }

    /// The payload of the batch last written at `index`.
    pub fn payload(&self, id: GroupId, index: Index) -> Option<Bytes> {
        let of = |record: &Record| match &record.body {
            Body::Batch(batch) if record.group_id == id && batch.header.index == index => {
                Some((!record.is_damaged).then(|| batch.payload.clone()))
            }
            _ => None,
        };
        let pending = self.pending.iter().rev().find_map(of);
        pending.or_else(|| self.synced.iter().rev().find_map(of)).flatten()
    }
}

/// The header goes through its bytes, as on a disk.
fn reread(batch: &Batch) -> Batch {
    Batch {
        header: BatchHeader::decode(&batch.header.encode()).expect("written so"),
        payload: batch.payload.clone(),
        trace: None,
    }
}

impl Durable {
    fn of(record: &Record) -> Self {
        let what = match &record.body {
            Body::Batch(b) => DurableWhat::Record {
                index: b.header.index,
                epoch: b.header.epoch,
            },
            Body::Base { index, epoch, .. } => DurableWhat::Record {
                index: *index,
                epoch: *epoch,
            },
            Body::Cut { number, .. } => DurableWhat::Cut { number: *number },
            Body::Dropped => DurableWhat::Dropped,
        };
        Self {
            group_id: record.group_id,
            what,
        }
    }
}

impl Disk {
    /// After damage: what there is, is what was found.
    pub fn reimage(&mut self, id: GroupId, log: &quorate_chain::Log) {
        let epochs = (log.first_index()..=log.last_index())
            .map(|index| log.epoch_at(index).expect("held"))
            .collect();
        let base = log.base().index;
        self.images.insert(id, Image { base, epochs });
        for record in self.synced.iter_mut().filter(|r| r.group_id == id) {
            record.is_damaged &= true;
        }
    }
}
