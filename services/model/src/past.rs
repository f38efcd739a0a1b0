//! What was committed and denied so far. No rule of the protocol looks at it; the properties do.

use crate::bounds::{Bounds, SESSIONS_MAX};
use crate::state::{Config, Entry, Epoch, Index, Server, ServerId, Session};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Past {
    /// What heads committed (and acked), by index.
    pub committed: Vec<Entry>,
    /// By epoch - 1: who committed something new in it, and in which life.
    pub committers: Vec<Option<(ServerId, u8)>>,
    /// By epoch - 1: sessions (bits) whose batch a head ordered after a replica behind it had left its epoch.
    pub late: Vec<u8>,
    /// By session: the latest epoch whose head ordered its batch; clients attach to none that is older.
    pub tried: [Epoch; SESSIONS_MAX],
    /// By session: the epoch whose head told its client that its batch had not been ordered, and 0 for none.
    /// From then on its client does not send it again.
    pub denied: [Epoch; SESSIONS_MAX],
    /// The first thing that happened and must not.
    pub wrong: Option<Wrong>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// A replica holds as committed something else than was committed at that index.
    Changed,
    /// A follower holds as committed what no head committed.
    CommittedByNobody,
    /// A batch below the commit index was cut.
    CommittedCut,
    TwoHeadsInOneEpoch,
    DeposedHeadCommitted,
    CommittedTwice,
    DeniedCommitted,
    CommittedBelowMinReplicas,
    /// A replica of the line was sent another batch at an index that it holds.
    TwoBatchesAtOneIndex,
}

impl Past {
    pub fn went_wrong(&mut self, wrong: Wrong) {
        self.wrong.get_or_insert(wrong);
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

    /// `server` raised its commit index to what it is now.
    pub fn note_commit(&mut self, id: ServerId, server: &Server, config: &Config, bounds: &Bounds) {
        let held = &server.log[..usize::from(server.commit)];
        let known = held.len().min(self.committed.len());
        if held[..known] != self.committed[..known] {
            self.went_wrong(Wrong::Changed);
        }
        if held.len() == known {
            return;
        }
        if !server.is_head() {
            self.went_wrong(Wrong::CommittedByNobody);
            return;
        }
        if config.chain.len() < bounds.min_replicas {
            self.went_wrong(Wrong::CommittedBelowMinReplicas);
        }
        self.note_committer(server.epoch, (id, server.life));
        for entry in &held[known..] {
            if entry.epoch == server.epoch && self.was_late(*entry) {
                self.went_wrong(Wrong::DeposedHeadCommitted);
            }
            if self.committed.iter().any(|other| other.session == entry.session) {
                self.went_wrong(Wrong::CommittedTwice);
            }
            if self.denied[usize::from(entry.session)] > 0 {
                self.went_wrong(Wrong::DeniedCommitted);
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
            self.went_wrong(Wrong::TwoHeadsInOneEpoch);
        }
    }

    /// A batch that its session lost sight of and that some head ordered: is it acked at this index?
    pub fn is_committed_at(&self, session: Session, index: Index) -> bool {
        let entry = self.committed.get(usize::from(index) - 1);
        entry.is_some_and(|entry| entry.session == session)
    }
}
