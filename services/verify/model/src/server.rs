//! The state of a server: its replica in memory, and its disk.

use crate::bounds::SESSIONS_MAX;
use crate::ids::{Entry, Epoch, Index, ServerId, UNBOUNDED};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ServerState {
    pub up: bool,
    /// Starts of the process so far.
    pub incarnation: u8,
    /// 0 if not configured in this incarnation.
    pub epoch: Epoch,
    /// The lowest epoch that the server may still be sent.
    pub epochs_from: Epoch,
    pub log: Vec<Entry>,
    /// Index of each session's batch, 0 for none.
    pub table: [Index; SESSIONS_MAX],
    pub commit: Index,
    pub durable: Index,
    /// The log that a restart finds.
    pub disk: Vec<Entry>,
    /// Handed to the disk and not yet synced, oldest first.
    pub unsynced: Vec<DiskWrite>,
    pub upstream: Upstream,
    pub downstream: Downstream,
    pub joining: Option<Joining>,
    /// At a head: the replicas whose acknowledgement it waits for, and their acknowledged indexes.
    pub ring: Vec<(ServerId, Option<Index>)>,
    pub acknowledged_to_head: Option<Index>,
    pub parked: Option<Parked>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiskWrite {
    Batch(Index, Entry),
    Truncation(Index),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Upstream {
    #[default]
    Unconfigured,
    IsHead,
    Asking,
    Following {
        /// A learner's acknowledged index, once it lacked nothing.
        confirmed: Option<Index>,
        predecessor_last: Index,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Downstream {
    #[default]
    Nobody,
    Awaiting,
    Streaming {
        next: Index,
        /// Commit index in the last message.
        sent_commit: Option<Index>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Joining {
    pub learner: ServerId,
    pub confirmed: Index,
    pub needed: Index,
}

/// A sync request that came before it could be answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parked {
    pub from: ServerId,
    pub epoch: Epoch,
    pub history: Vec<Epoch>,
}

impl ServerState {
    pub fn last(&self) -> Index {
        self.log.len() as Index
    }

    /// Whether a truncation of the log is not on disk yet.
    pub fn has_pending_truncation(&self) -> bool {
        self.unsynced
            .iter()
            .any(|write| matches!(write, DiskWrite::Truncation(_)))
    }

    pub fn is_head(&self) -> bool {
        self.upstream == Upstream::IsHead
    }

    /// Whether the log agrees with the head's up to its end, also after a crash.
    pub fn is_settled(&self) -> bool {
        matches!(self.upstream, Upstream::IsHead | Upstream::Following { .. })
            && !self.has_pending_truncation()
    }

    /// Whether all replicas that the head waits for have acknowledged.
    pub fn ring_pass_is_complete(&self) -> bool {
        self.ring.iter().all(|(_, acknowledged)| acknowledged.is_some())
    }

    /// The lowest index that they have acknowledged.
    pub fn ring_index(&self) -> Index {
        let acknowledged = self.ring.iter().map(|(_, index)| index.unwrap_or(0));
        acknowledged.min().unwrap_or(UNBOUNDED)
    }

    pub fn rebuild_table(&mut self) {
        self.table = [0; SESSIONS_MAX];
        for (at, entry) in self.log.iter().enumerate() {
            self.table[usize::from(entry.session)] = at as Index + 1;
        }
    }
}
