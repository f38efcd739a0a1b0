//! What a journal's records of one group amount to, worked out apart from the code under test; and where they lie.

use std::collections::VecDeque;

use quorate_chain::Log;
use quorate_journal::record::Lsn;
use quorate_types::{Epoch, Index};

use super::Body;

/// The epochs of the batches behind a base.
#[derive(Debug, Default, Clone)]
pub struct Image {
    base: Index,
    epochs: VecDeque<Epoch>,
    /// What clients trimmed.
    trimmed: Index,
}

impl Image {
    pub(super) fn apply(&mut self, body: &Body) {
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
            Body::Trim { index } => {
                assert!(*index <= self.last(), "trimmed what is not there");
                self.trimmed = self.trimmed.max(*index);
            }
            Body::Dropped => unreachable!("a dropped group has no image"),
        }
    }

    /// After damage: what there is, is what was found.
    pub fn of(log: &Log, trimmed: Index) -> Self {
        let epochs = (log.first_index()..=log.last_index())
            .map(|index| log.epoch_at(index).expect("held"))
            .collect();
        Self {
            base: log.base().index,
            epochs,
            trimmed,
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

    /// What is recovered is what the synced records amount to.
    pub fn check(&self, log: &Log) {
        assert_eq!(
            log.last_index(),
            self.last(),
            "recovered another log than the journal holds"
        );
        for index in log.first_index().max(self.base + 1)..=log.last_index() {
            assert_eq!(
                log.epoch_at(index),
                self.epoch_at(index),
                "recovered another batch at {index}"
            );
        }
    }
}

/// The records of one group that it needs, as `services/replica/src/disk.rs` keeps them.
#[derive(Debug, Default)]
pub struct Places {
    first_index: Index,
    batches: VecDeque<Lsn>,
    pub base_lsn: Option<Lsn>,
}

impl Places {
    /// Of a log that begins anew: what lay before is kept from there on.
    pub fn behind(oldest_lsn: Option<Lsn>) -> Self {
        Self {
            base_lsn: oldest_lsn,
            ..Self::default()
        }
    }

    pub fn note(&mut self, index: Index, lsn: Lsn) {
        if self.batches.is_empty() {
            self.first_index = index;
        }
        let Some(at) = index.checked_sub(self.first_index) else {
            return;
        };
        self.batches.truncate(at as usize);
        if self.batches.len() as u64 != at {
            // A gap: the log began anew behind a base.
            self.batches.clear();
            self.first_index = index;
        }
        self.batches.push_back(lsn);
    }

    pub fn get(&self, index: Index) -> Option<Lsn> {
        let at = index.checked_sub(self.first_index)?;
        self.batches.get(at as usize).copied()
    }

    pub fn forget_through(&mut self, index: Index) {
        while self.first_index <= index && !self.batches.is_empty() {
            self.batches.pop_front();
            self.first_index += 1;
        }
    }

    pub fn oldest_lsn(&self) -> Option<Lsn> {
        let first = self.batches.front().copied();
        match (first, self.base_lsn) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
