//! Rebuilding a replica from its journal, record by record in the order in which they were written.
//!
//! The journal frees space in whole segments, so what is read may begin in the middle: with batches that a base
//! found later says to be trimmed, with a base whose batches lay before it, even with remains of a log that was
//! replaced. So a gap is no damage yet: the log begins anew behind it, with a base that is made up until the true
//! one comes. Only a log that has no true base at the end is damaged.

use bytes::Bytes;
use quorate_types::Index;
use quorate_types::limits::RECENT_BYTES_PER_GROUP;
use quorate_wire::{Batch, BatchHeader};

use crate::base::Base;
use crate::log::Log;
use crate::replica::Replica;
use crate::trim::Trim;

/// The journal lacks batches between two that it has, or the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("batch {index} follows in the journal where batch {expected} should")]
pub struct RecoverError {
    pub index: Index,
    pub expected: Index,
}

#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// The log's base is made up from the first batch behind a gap: it lacks the session table.
    gap: Option<RecoverError>,
    /// A base that lies before the log: an older one, or that of a log which replaced this one.
    aside: Option<Base>,
}

impl Recovery {
    pub fn is_open(&self) -> bool {
        self.gap.is_some()
    }
}

impl Replica {
    /// Takes in the next batch found in the journal, on stable storage by that. A batch at an index that is
    /// held already was ordered later, after the log had been cut there.
    pub fn recover(&mut self, batch: Batch) {
        let index = batch.header.index;
        if self.recovery.is_open() && index <= self.log.base().index {
            let aside = self.recovery.aside.take().filter(|base| base.index + 1 == index);
            self.begin(aside.unwrap_or_default());
        }
        let expected = self.log.last_index() + 1;
        if index > expected {
            let header = &batch.header;
            self.begin(Base {
                index: index - 1,
                end_offset: header.base_offset,
                cumulative_bytes: header.cumulative_bytes - header.entry_bytes(),
                ..Base::default()
            });
            self.recovery.gap = Some(RecoverError { index, expected });
        }
        if index <= self.log.base().index {
            return;
        }
        self.log.truncate(index - 1);
        self.log.push(batch);
        self.durable_index = self.log.last_index();
        self.log.evict(self.durable_index, RECENT_BYTES_PER_GROUP);
    }

    /// As [`Replica::recover`], of a batch whose payload stays where it was found.
    pub fn recover_on_disk(&mut self, header: BatchHeader) {
        self.recover(Batch {
            header,
            payload: Bytes::new(),
            trace: None,
        });
        self.log.evict(self.log.last_index(), 0);
    }

    /// Takes in a base found in the journal: either what is held up to it was trimmed, or the log began anew.
    pub fn recover_base(&mut self, base: Base) {
        if self.recovery.is_open() && base.index < self.log.base().index {
            self.recovery.aside = Some(base);
            return;
        }
        let joins = self.recovery.is_open() && base.index == self.log.base().index;
        let held = base.index >= self.log.base().index && self.log.epoch_at(base.index) == Some(base.epoch);
        if joins || held {
            self.log.begin_behind(base);
            self.recovery = Recovery::default();
            self.commit_index = self.log.base().index;
        } else {
            self.begin(base);
        }
    }

    /// Takes in a cut found in the journal. A cut to 0 ends whatever was before.
    pub fn recover_cut(&mut self, index: Index) {
        if index == 0 {
            self.trim = Trim::new();
            return self.begin(Base::default());
        }
        if index < self.log.base().index {
            let gap = RecoverError {
                index,
                expected: self.log.base().index,
            };
            let aside = self.recovery.aside.take().filter(|base| base.index <= index);
            let is_known = aside.is_some();
            self.begin(aside.unwrap_or_default());
            self.recovery.gap = Some(gap).filter(|_| !is_known);
        }
        self.log.truncate(index);
        self.durable_index = self.log.last_index();
    }

    /// Takes in a trim found in the journal: clients asked for it, and were told.
    pub fn recover_trim(&mut self, index: Index) {
        self.trim.recover(index);
    }

    /// Ends recovery; to be called behind the last record. An error means that the journal lacks a part of the
    /// log: the replica is of no use.
    pub fn recovered_all(&mut self) -> Result<(), RecoverError> {
        match (self.recovery.gap, self.recovery.aside.take()) {
            (None, _) => {}
            // A base that lies before the gap does not make the log whole: what lay between is lost.
            (Some(gap), _) => return Err(gap),
        }
        self.trim.recover(self.log.base().index);
        // Only what is committed is trimmed.
        let trimmed = self.trim.target.min(self.log.last_index());
        self.commit_index = self.commit_index.max(trimmed);
        Ok(())
    }

    fn begin(&mut self, base: Base) {
        self.recovery = Recovery::default();
        self.commit_index = base.index;
        self.log = Log::new(base);
        self.durable_index = self.log.last_index();
    }
}
