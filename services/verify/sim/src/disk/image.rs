//! The log that a journal's records of one group amount to, computed without the code under test.

use std::collections::VecDeque;

use quorate_chain::Log;
use quorate_recovery::GroupRecord;
use quorate_recovery::record::{KIND_BASE, KIND_BATCH, KIND_REPAIRED, KIND_TRIM, KIND_TRUNCATE};
use quorate_types::{Epoch, Index};

/// The epochs of the batches behind a base.
#[derive(Debug, Default, Clone)]
pub struct Image {
    base: Index,
    base_epoch: Epoch,
    epochs: VecDeque<Epoch>,
    /// The index to which clients trimmed.
    trimmed: Index,
    /// Its last repair record says that more had been durable.
    is_damaged: bool,
}

impl Image {
    pub(super) fn apply(&mut self, entry: &GroupRecord) {
        let durable = &entry.durable;
        let (index, epoch) = (durable.index, durable.epoch);
        match durable.kind {
            KIND_BATCH => {
                self.truncate(index - 1);
                assert_eq!(index, self.last() + 1, "the journal is given a dense log");
                self.epochs.push_back(epoch);
            }
            KIND_TRUNCATE => {
                self.truncate(index);
                self.is_damaged &= index > 0;
            }
            KIND_BASE => {
                let is_held = match index.checked_sub(self.base) {
                    // The same, stated once more.
                    Some(0) => index > 0 && epoch == self.base_epoch,
                    _ => self.epoch_at(index) == Some(epoch),
                };
                if is_held {
                    self.epochs.drain(..(index - self.base) as usize);
                } else {
                    self.epochs.clear();
                    self.trimmed = self.trimmed.min(index);
                }
                (self.base, self.base_epoch) = (index, epoch);
            }
            KIND_TRIM => {
                assert!(index <= self.last(), "trimmed what is not there");
                self.trimmed = self.trimmed.max(index);
            }
            KIND_REPAIRED => {
                assert_eq!(index, self.last(), "mended up to another index than the last");
                self.is_damaged = entry.head[24] == 1;
            }
            other => unreachable!("a record of kind {other} has no image"),
        }
    }

    /// The image of a log that was found.
    pub fn of(log: &Log, trimmed: Index, is_damaged: bool) -> Self {
        let epochs = (log.first_index()..=log.last_index())
            .map(|index| log.epoch_at(index).expect("held"))
            .collect();
        Self {
            base: log.base().index,
            base_epoch: log.base().epoch,
            epochs,
            trimmed,
            is_damaged,
        }
    }

    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    fn truncate(&mut self, index: Index) {
        if index == 0 {
            (self.base, self.base_epoch) = (0, 0);
        }
        assert!(
            index >= self.base,
            "truncated to {index} below the base {}",
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

    /// The last batch behind the base, and its epoch.
    pub fn end(&self) -> Option<(Index, Epoch)> {
        Some((self.last(), *self.epochs.back()?))
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

    /// Checks that the recovered log is the one that the synced records amount to.
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
