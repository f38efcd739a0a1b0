//! Rebuilding a replica from its journal, record by record in the order in which they were written.
//!
//! The journal frees space in whole segments, so what is read may begin in the middle: with batches that a base
//! found later says to be trimmed, even with remains of a log that was replaced. The log then begins behind a
//! base that is not known yet, until the base comes.

use quorate_types::Index;
use quorate_types::limits::RECENT_BYTES_PER_GROUP;
use quorate_wire::Batch;

use crate::base::Base;
use crate::log::Log;
use crate::replica::Replica;

/// The journal lacks batches between two that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("batch {index} follows in the journal where batch {expected} should")]
pub struct RecoverError {
    pub index: Index,
    pub expected: Index,
}

#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// The log's base is made up from the first batch that was met: it lacks the session table.
    lacks_base: bool,
    /// A base that lies before the log: an older one, or that of a log which replaced this one.
    aside: Option<Base>,
}

impl Recovery {
    pub fn is_open(&self) -> bool {
        self.lacks_base
    }
}

impl Replica {
    /// Takes in the next batch found in the journal, on stable storage by that. A batch at an index that is
    /// held already was ordered later, after the log had been cut there.
    pub fn recover(&mut self, batch: Batch) -> Result<(), RecoverError> {
        let index = batch.header.index;
        if self.recovery.lacks_base && index <= self.log.base().index {
            let aside = self.recovery.aside.take().filter(|base| base.index + 1 == index);
            self.begin(aside.unwrap_or_default());
        }
        let is_untouched = self.log.last_index() == 0;
        if is_untouched && index > 1 {
            let header = &batch.header;
            self.begin(Base {
                index: index - 1,
                end_offset: header.base_offset,
                cumulative_bytes: header.cumulative_bytes - header.entry_bytes(),
                ..Base::default()
            });
            self.recovery.lacks_base = true;
        }
        if index <= self.log.base().index {
            return Ok(());
        }
        if index > self.log.last_index() + 1 {
            return Err(RecoverError { index, expected: self.log.last_index() + 1 });
        }
        self.log.truncate(index - 1);
        self.log.push(batch);
        self.durable_index = self.log.last_index();
        self.log.evict(self.durable_index, RECENT_BYTES_PER_GROUP);
        Ok(())
    }

    /// Takes in a base found in the journal: either what is held up to it was trimmed, or the log began anew.
    pub fn recover_base(&mut self, base: Base) {
        if self.recovery.lacks_base && base.index < self.log.base().index {
            self.recovery.aside = Some(base);
            return;
        }
        let joins = self.recovery.lacks_base && base.index == self.log.base().index;
        let held = base.index >= self.log.base().index && self.log.epoch_at(base.index) == Some(base.epoch);
        if joins || held {
            self.log.begin_behind(base);
            self.recovery = Recovery::default();
            self.commit_index = self.log.base().index;
        } else {
            self.begin(base);
        }
    }

    /// Takes in a cut found in the journal.
    pub fn recover_cut(&mut self, index: Index) -> Result<(), RecoverError> {
        if index < self.log.base().index {
            if !self.recovery.lacks_base {
                return Err(RecoverError { index, expected: self.log.base().index });
            }
            let aside = self.recovery.aside.take().filter(|base| base.index <= index);
            self.begin(aside.unwrap_or_default());
        }
        self.log.truncate(index);
        self.durable_index = self.log.last_index();
        Ok(())
    }

    /// Ends recovery. An error means that the journal lacks the log's beginning: the replica is of no use.
    pub fn recovered_all(&mut self) -> Result<(), RecoverError> {
        if !self.recovery.lacks_base {
            return Ok(());
        }
        let Some(aside) = self.recovery.aside.take() else {
            return Err(RecoverError { index: self.log.first_index(), expected: 1 });
        };
        self.begin(aside);
        Ok(())
    }

    fn begin(&mut self, base: Base) {
        self.recovery = Recovery::default();
        self.commit_index = base.index;
        self.log = Log::new(base);
        self.durable_index = self.log.last_index();
    }
}
