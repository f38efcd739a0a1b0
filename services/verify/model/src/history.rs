//! Committed and denied appends so far. No rule of the protocol looks at them; the properties do.

use crate::bounds::{Bounds, SESSIONS_MAX};
use crate::config::ChainConfig;
use crate::ids::{Entry, Epoch, Index, ServerId, Session};
use crate::server::ServerState;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct History {
    /// Entries that heads committed (and acked), by index.
    pub committed: Vec<Entry>,
    /// By epoch - 1: the server that committed a new entry in it, and its incarnation.
    pub committers: Vec<Option<(ServerId, u8)>>,
    /// By epoch - 1: sessions (bits) whose batch a head ordered after a replica behind it had left the epoch.
    pub late: Vec<u8>,
    /// By session: the latest epoch whose head ordered its batch. Clients attach to no older one.
    pub tried: [Epoch; SESSIONS_MAX],
    /// By session: the epoch whose head answered that the batch had not been ordered, 0 for none. The client does not send
    /// the batch again.
    pub denied: [Epoch; SESSIONS_MAX],
    /// The first breach of a property.
    pub breach: Option<Breach>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Breach {
    /// A replica holds as committed another entry than was committed at that index.
    Changed,
    /// A follower holds as committed an entry that no head committed.
    CommittedByNobody,
    /// A batch below the commit index was truncated.
    CommittedTruncated,
    TwoHeadsInOneEpoch,
    DeposedHeadCommitted,
    CommittedTwice,
    DeniedCommitted,
    CommittedBelowMinReplicas,
    /// A replica of the line was sent another batch at an index that it holds.
    TwoBatchesAtOneIndex,
}

impl History {
    pub fn note_breach(&mut self, breach: Breach) {
        self.breach.get_or_insert(breach);
    }

    pub fn note_late(&mut self, epoch: Epoch, session: Session) {
        let at = usize::from(epoch) - 1;
        if self.late.len() <= at {
            self.late.resize(at + 1, 0);
        }
        self.late[at] |= 1 << session;
    }

    fn was_late(&self, entry: Entry) -> bool {
        let late = self.late.get(usize::from(entry.epoch) - 1).copied().unwrap_or(0);
        late & (1 << entry.session) != 0
    }

    /// `server` raised its commit index to its present value.
    pub fn note_commit(&mut self, id: ServerId, server: &ServerState, config: &ChainConfig, bounds: &Bounds) {
        let held = &server.log[..usize::from(server.commit)];
        let known = held.len().min(self.committed.len());
        if held[..known] != self.committed[..known] {
            self.note_breach(Breach::Changed);
        }
        if held.len() == known {
            return;
        }
        if !server.is_head() {
            self.note_breach(Breach::CommittedByNobody);
            return;
        }
        if config.chain.len() < bounds.min_replicas {
            self.note_breach(Breach::CommittedBelowMinReplicas);
        }
        self.note_committer(server.epoch, (id, server.incarnation));
        for entry in &held[known..] {
            if entry.epoch == server.epoch && self.was_late(*entry) {
                self.note_breach(Breach::DeposedHeadCommitted);
            }
            if self.committed.iter().any(|other| other.session == entry.session) {
                self.note_breach(Breach::CommittedTwice);
            }
            if self.denied[usize::from(entry.session)] > 0 {
                self.note_breach(Breach::DeniedCommitted);
            }
            self.committed.push(*entry);
        }
    }

    fn note_committer(&mut self, epoch: Epoch, committer: (ServerId, u8)) {
        let at = usize::from(epoch) - 1;
        if self.committers.len() <= at {
            self.committers.resize(at + 1, None);
        }
        if *self.committers[at].get_or_insert(committer) != committer {
            self.note_breach(Breach::TwoHeadsInOneEpoch);
        }
    }

    /// Whether the session's batch is committed at this index.
    pub fn is_committed_at(&self, session: Session, index: Index) -> bool {
        let entry = self.committed.get(usize::from(index) - 1);
        entry.is_some_and(|entry| entry.session == session)
    }
}
