//! The messages between replicas.

use crate::ids::{Entry, Epoch, Index};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelMessage {
    pub epoch: Epoch,
    pub body: MessageBody,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MessageBody {
    /// The link was broken and is up again. It comes before any message of the new connection.
    LinkUp,
    Replicate {
        index: Index,
        entry: Entry,
        commit: Index,
        last: Index,
    },
    CommitNotice {
        commit: Index,
    },
    /// The epoch of every batch held: the same as a history of intervals.
    SyncRequest {
        history: Vec<Epoch>,
    },
    SyncReply {
        common: Index,
        last: Index,
        commit: Index,
    },
    /// A learner's `is_caught_up`.
    LearnerAck {
        index: Index,
    },
    ChainAck {
        index: Index,
    },
}
