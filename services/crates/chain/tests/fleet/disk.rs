//! One server's journal: records in order, synced in runs; a crash keeps what was synced and, of the rest, a prefix.

use std::collections::VecDeque;

use bytes::Bytes;
use quorate_chain::{Base, Event, Replica};
use quorate_types::{Durability, Epoch, Index, ServerId};
use quorate_wire::Batch;
use rand::Rng;
use rand::rngs::SmallRng;

#[derive(Debug, Clone)]
pub enum Record {
    Batch(Batch),
    Base { base: Bytes, index: Index, epoch: Epoch },
    Cut { index: Index, number: u64 },
    Trim { index: Index },
}

#[derive(Debug, Default)]
pub struct Disk {
    synced: Vec<Record>,
    pending: VecDeque<Record>,
    /// Of the pending ones, how many the running sync covers.
    pub syncing: usize,
    /// What the synced records amount to, worked out apart from the code under test.
    pub image: Image,
    /// Grows when the disk is lost.
    pub lineage: u64,
}

/// The epochs of the batches behind a base.
#[derive(Debug, Default, Clone)]
pub struct Image {
    base: Index,
    /// What clients trimmed.
    pub trimmed: Index,
    epochs: VecDeque<Epoch>,
}

impl Image {
    fn apply(&mut self, record: &Record) {
        match record {
            Record::Batch(batch) => {
                self.truncate(batch.header.index - 1);
                assert_eq!(
                    batch.header.index,
                    self.last() + 1,
                    "the journal is given a dense log"
                );
                self.epochs.push_back(batch.header.epoch);
            }
            Record::Cut { index, .. } => self.truncate(*index),
            Record::Trim { index } => {
                assert!(*index <= self.last(), "trimmed what is not there");
                self.trimmed = self.trimmed.max(*index);
            }
            Record::Base { index, epoch, .. } => {
                if *index >= self.base && self.epoch_at(*index) == Some(*epoch) {
                    self.epochs.drain(..(*index - self.base) as usize);
                } else {
                    self.epochs.clear();
                }
                self.base = *index;
            }
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

    /// Batches up to this are gone for readers.
    pub fn trimmed_through(&self) -> Index {
        self.trimmed.max(self.base)
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

impl Disk {
    pub fn submit(&mut self, record: Record) {
        self.pending.push_back(record);
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

    /// The running sync is done: what the replica is told.
    pub fn complete(&mut self, merged: bool, rng: &mut SmallRng) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        let mut last_kind = None;
        for _ in 0..std::mem::take(&mut self.syncing) {
            let record = self
                .pending
                .pop_front()
                .expect("a sync covers what was submitted");
            let event = match &record {
                Record::Batch(b) => Event::Persisted {
                    index: b.header.index,
                    epoch: b.header.epoch,
                },
                Record::Base { index, epoch, .. } => Event::Persisted {
                    index: *index,
                    epoch: *epoch,
                },
                Record::Cut { number, .. } => Event::CutPersisted { number: *number },
                Record::Trim { index } => Event::TrimPersisted { index: *index },
            };
            let kind = std::mem::discriminant(&record);
            match events.last_mut() {
                Some(last) if merged && last_kind == Some(kind) => *last = event,
                _ => events.push(event),
            }
            last_kind = Some(kind);
            self.keep(record, rng);
        }
        events
    }

    fn keep(&mut self, record: Record, rng: &mut SmallRng) {
        self.image.apply(&record);
        let is_base = matches!(record, Record::Base { .. });
        self.synced.push(record);
        if is_base {
            self.release(rng);
        }
    }

    /// Frees the front of the journal, up to somewhere before the oldest record that is needed.
    fn release(&mut self, rng: &mut SmallRng) {
        let first_needed = self.image.base + 1;
        let newest_base = self.synced.iter().rposition(|r| matches!(r, Record::Base { .. }));
        let oldest_batch = if self.image.epochs.is_empty() {
            None
        } else {
            self.synced
                .iter()
                .rposition(|r| matches!(r, Record::Batch(b) if b.header.index == first_needed))
        };
        let needed = newest_base.into_iter().chain(oldest_batch).min().unwrap_or(0);
        let freed = rng.random_range(0..=needed);
        self.synced.drain(..freed);
    }

    /// A crash: of what was not synced, the first so many records are on the disk nevertheless.
    pub fn crash(&mut self, rng: &mut SmallRng) {
        let survives = rng.random_range(0..=self.pending.len());
        for _ in 0..survives {
            let record = self.pending.pop_front().expect("counted");
            self.keep(record, rng);
        }
        self.pending.clear();
        self.syncing = 0;
    }

    pub fn wipe(&mut self) {
        *self = Disk {
            lineage: self.lineage + 1,
            ..Disk::default()
        };
    }

    pub fn recover(&self, me: ServerId) -> Replica {
        let mut replica = Replica::recovered(me, Durability::Persistent, Base::default());
        for record in &self.synced {
            match record {
                Record::Batch(batch) => replica.recover(batch.clone()),
                Record::Base { base, .. } => replica.recover_base(Base::decode(base).expect("a base")),
                Record::Cut { index, .. } => replica.recover_cut(*index),
                Record::Trim { index } => replica.recover_trim(*index),
            }
        }
        replica.recovered_all().expect("the journal has the whole log");
        let log = replica.log();
        assert_eq!(
            log.last_index(),
            self.image.last(),
            "recovered another log than the journal holds"
        );
        for index in log.first_index()..=log.last_index() {
            assert_eq!(
                log.epoch_at(index),
                self.image.epoch_at(index),
                "recovered another batch at {index}"
            );
        }
        replica
    }

    /// The payload of the batch last written at `index`.
    pub fn payload(&self, index: Index) -> Option<Bytes> {
        let of = |record: &Record| match record {
            Record::Batch(batch) if batch.header.index == index => Some(batch.payload.clone()),
            _ => None,
        };
        self.pending
            .iter()
            .rev()
            .find_map(of)
            .or_else(|| self.synced.iter().rev().find_map(of))
    }
}
