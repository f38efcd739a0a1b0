//! Observations of a replica between events.

use bytes::Bytes;
use quorate_types::planted::{self, Bug};
use quorate_types::{
    Access, ConfigDigest, Durability, Epoch, GroupConfig, GroupState, Index, Layout, Micros, Offset, Role,
    ServerId,
};

use super::Replica;
use crate::lag::{Lags, Reach};
use crate::log::Log;
use crate::read::{self, PageBounds, ReadError, ReadPage};

impl Replica {
    pub fn is_head(&self) -> bool {
        self.membership.is_head()
    }

    /// Whether every replica of the chain is known to agree with this head's log in this epoch. Answer a client's ATTACH
    /// (its `next_seq`) no earlier: before that, a batch that the session table does *not* hold may still be ordered.
    pub fn chain_agrees(&self) -> bool {
        if planted::on(Bug::AttachedBeforeRing) {
            return self.is_head();
        }
        self.is_head() && self.headship.is_agreed() && self.is_settled()
    }

    /// At a head: its clients should look for another.
    pub fn is_isolated(&self) -> bool {
        self.isolation.is_isolated()
    }

    /// At a head: the tick since which nothing was acknowledged, though something is under way.
    pub fn stalled_since(&self) -> Option<Micros> {
        self.isolation.stalled_since()
    }

    /// The last batch that this replica, as a head, found older than is retained.
    pub fn old_index(&self) -> Index {
        self.trim.old_index()
    }

    pub fn epoch(&self) -> Epoch {
        self.membership.epoch()
    }

    pub fn config(&self) -> Option<&GroupConfig> {
        self.membership.config()
    }

    /// The part of the service that clients may use.
    pub fn access(&self) -> Access {
        self.config().map_or(Access::Full, |config| config.access)
    }

    /// The layout of the partition's group.
    pub fn layout(&self) -> Layout {
        self.config().map_or(Layout::default(), |config| config.layout)
    }

    /// Whether this is another configuration of the replica's own epoch: an epoch was issued twice.
    pub fn contradicts(&self, config: &GroupConfig) -> bool {
        let mut known = self.config().into_iter();
        known.any(|known| known.epoch == config.epoch && ConfigDigest::of(known) != ConfigDigest::of(config))
    }

    pub fn role(&self) -> Role {
        self.membership.role()
    }

    pub fn durability(&self) -> Durability {
        self.local.durability()
    }

    pub fn state(&self) -> GroupState {
        let Some(config) = self.config() else {
            return GroupState::Syncing;
        };
        if !self.is_settled() {
            GroupState::Syncing
        } else if self.has_fault() || self.headship.has_fault() {
            GroupState::ReadOnly
        } else {
            config.state()
        }
    }
}

/// Positions in the log.
impl Replica {
    pub fn log(&self) -> &Log {
        self.local.log()
    }

    pub fn commit_index(&self) -> Index {
        self.local.commit_index()
    }

    pub fn commit_offset(&self) -> Offset {
        self.local.commit_offset()
    }

    /// All committed entries ever, those of a lost log before this one included: the group's usage.
    pub fn committed_entries(&self) -> u64 {
        let beginning = self.config().and_then(|c| c.beginning);
        match beginning {
            Some(b) => b.entries_before + self.commit_offset().saturating_sub(b.offset),
            None => self.commit_offset(),
        }
    }

    /// Bytes of all committed entries ever.
    pub fn committed_bytes(&self) -> u64 {
        self.log().cumulative_bytes_at(self.commit_index())
    }

    /// Bytes ordered here and not yet committed, headers included.
    pub fn uncommitted_bytes(&self) -> u64 {
        let (log, commit_index) = (self.log(), self.commit_index());
        if commit_index == log.last_index() {
            return 0;
        }
        log.weight(log.last_index()) - log.weight(commit_index)
    }

    /// Up to here the log is on stable storage; 0 while that is not known of a log that replaced another.
    pub fn durable_index(&self) -> Index {
        self.local.durable_index()
    }

    /// Up to here the log may go: it is committed, on the disk, and nobody still has to be sent it.
    pub fn freeable_index(&self) -> Index {
        let needed = self.downstream.freeable(self.commit_index());
        let has = match self.durability() {
            Durability::InMemory => self.commit_index(),
            Durability::Persistent => self.commit_index().min(self.durable_index()),
        };
        needed.min(has)
    }

    pub fn durable_offset(&self) -> Offset {
        self.log().end_offset(self.durable_index())
    }

    pub fn trim_offset(&self) -> Offset {
        self.log().end_offset(self.trim.index(&self.local))
    }

    /// Readers are served no batch up to this, once it is known to be committed here.
    pub fn trimmed_through(&self) -> Index {
        self.trim.target().max(self.log().base().index)
    }
}

/// Batches.
impl Replica {
    pub fn payload(&self, index: Index) -> Option<&Bytes> {
        self.log().get(index).and_then(|b| b.payload.as_ref())
    }

    /// Batches from the one that holds `offset`, until one of the bounds is reached; at least one batch, if there is
    /// any. An empty page means that nothing is committed at `offset` yet.
    ///
    /// An offset within the log may lie beyond what *this* replica knows to be committed. Only an offset beyond the end
    /// of a head's log is an error.
    pub fn read(
        &self,
        offset: Offset,
        max_bytes: u32,
        max_entries: u32,
        max_batches: u32,
    ) -> Result<ReadPage, ReadError> {
        let bounds = PageBounds {
            bytes: max_bytes,
            entries: max_entries,
            batches: max_batches,
        };
        read::page(&self.local, self.trim_offset(), self.is_head(), offset, bounds)
    }
}

/// Pending work.
impl Replica {
    /// Lags as of the last tick's marks.
    pub fn lags(&self, now: Micros) -> Lags {
        let successor = self.downstream.reach(self.commit_index());
        self.lag.lags(now, self.journal_reach(), successor)
    }

    pub(super) fn journal_reach(&self) -> Reach {
        Reach {
            handed: self.log().last_index(),
            arrived: self.durable_index(),
        }
    }

    /// The server that this replica sends its log to at present.
    pub fn feeds(&self) -> Option<ServerId> {
        self.downstream.feeds()
    }

    /// Bytes that a learner could be sent now, if they were allowed.
    pub fn catchup_wanted_bytes(&self) -> u64 {
        self.downstream.wanted_bytes(&self.local)
    }

    /// The successor does not know the commit index, and no batch that could carry it is there.
    pub fn is_commit_notice_pending(&self) -> bool {
        self.downstream.is_notice_pending()
    }

    /// Refusals that wait to become certain.
    pub fn held_refusals(&self) -> usize {
        self.headship.held_refusals()
    }
}
