//! Rebuilding a replica's log from the journal, record by record in the order in which they were written.
//!
//! The journal frees space in whole segments, so the first records may come from the middle of a log. They may be
//! batches that a later base trims, a base whose batches lay before it, or remains of a log that was replaced. A gap is
//! therefore no damage yet. The log begins again behind it, with a made-up base, until the true base comes. Only a log
//! without a true base at the end is damaged.

use quorate_types::Index;
use quorate_wire::Batch;

use crate::local_log::LocalLog;
use crate::log::Base;
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

    /// A batch at an index that the log holds already was ordered later, after a truncation there.
    pub fn batch(&mut self, local: &mut LocalLog, batch: Batch) {
        let index = batch.header.index;
        if self.is_open() && index <= local.log().base().index {
            let aside = self.aside.take().filter(|base| base.index + 1 == index);
            self.begin(local, aside.unwrap_or_default());
        }
        let expected = local.last_index() + 1;
        if index > expected {
            let header = &batch.header;
            let made_up = Base {
                index: index - 1,
                end_offset: header.base_offset,
                cumulative_bytes: header.cumulative_bytes - header.entry_bytes(),
                ..Base::default()
            };
            self.begin(local, made_up);
            self.gap = Some(RecoverError { index, expected });
        }
        if index > local.log().base().index {
            local.recover_batch(batch);
        }
    }

    /// A base says either that the batches up to it were trimmed, or that the log began again behind it.
    pub fn base(&mut self, local: &mut LocalLog, base: Base) {
        let log = local.log();
        if self.is_open() && base.index < log.base().index {
            self.aside = Some(base);
            return;
        }
        let joins = self.is_open() && base.index == log.base().index;
        let is_held = base.index >= log.base().index && log.epoch_at(base.index) == Some(base.epoch);
        if joins || is_held {
            *self = Self::default();
            local.recover_base(base);
        } else {
            self.begin(local, base);
        }
    }

    /// A truncation to 0 ends all logs before it, and their trims.
    pub fn truncation(&mut self, local: &mut LocalLog, trim: &mut Trim, index: Index) {
        if index == 0 {
            *trim = Trim::default();
            return self.begin(local, Base::default());
        }
        let expected = local.log().base().index;
        if index < expected {
            let aside = self.aside.take().filter(|base| base.index <= index);
            let is_known = aside.is_some();
            self.begin(local, aside.unwrap_or_default());
            self.gap = (!is_known).then_some(RecoverError { index, expected });
        }
        local.recover_truncation(index);
    }

    /// Ends recovery behind the last record. An error means that the journal lacks a part of the log.
    pub fn end(&mut self, local: &mut LocalLog, trim: &mut Trim) -> Result<(), RecoverError> {
        // A base that lies before the gap does not make the log whole: the batches between are lost.
        self.aside = None;
        if let Some(gap) = self.gap {
            return Err(gap);
        }
        trim.recover(local.log().base().index);
        local.recover_trim(trim.target());
        Ok(())
    }

    fn begin(&mut self, local: &mut LocalLog, base: Base) {
        *self = Self::default();
        local.recover_from(base);
    }
}
