//! Events that a replica takes, and commands that it gives to its shell.

use bytes::Bytes;
use quorate_types::{Code, Epoch, GroupConfig, Index, Micros, Offset, ServerId};
use quorate_wire::{Batch, TraceContext, peer};

/// The address of an answer: a connection of this server, and the client's channel on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientRef {
    pub connection: u64,
    pub channel: u32,
}

/// An append whose shape was checked and whose cost was admitted.
#[derive(Debug, Clone)]
pub struct AppendRequest {
    pub client: ClientRef,
    pub session: u64,
    pub seq: u64,
    pub floor_index: Index,
    /// `u64::MAX`: no condition.
    pub expected_offset: Offset,
    /// 0: none.
    pub fencing_token: u64,
    pub entry_count: u32,
    pub payload: Bytes,
    pub payload_crc: u32,
    pub arrival: Arrival,
    /// Wall clock for the batch's timestamp, and whether it is in doubt.
    pub wall_us: u64,
    pub is_clock_doubted: bool,
    pub trace: Option<TraceContext>,
}

/// The times from which an append's latency counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrival {
    pub received_us: Micros,
    /// The time at which the head ordered it: what came before is the queue's.
    pub ordered_us: Micros,
    /// The time at which the group's reservation let it pass; `None` for appends that nothing was reserved for.
    pub start_us: Option<Micros>,
}

/// A client's question to a group, besides entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Discard all whole batches that end at or before the offset.
    Trim { before_offset: Offset },
    /// The end of the log. The head answers when a ring pass has confirmed that it still is the head.
    Status,
}

#[derive(Debug, Clone)]
pub enum ReplicaEvent {
    /// Boxed: it is rare, and events are moved as wide as the widest.
    Configure(Box<GroupConfig>),
    Append(AppendRequest),
    /// Answered by [`ReplicaCommand::Answer`].
    Ask {
        client: ClientRef,
        request: u32,
        asked: Asked,
    },
    Peer {
        from: ServerId,
        epoch: Epoch,
        message: peer::Message,
    },
    /// The batch (or base) that `epoch` ordered at `index` is on stable storage, with all before it.
    Persisted {
        index: Index,
        epoch: Epoch,
    },
    /// The record of the [`ReplicaCommand::Truncate`] of this number is on stable storage, with all before it.
    TruncationPersisted {
        number: u64,
    },
    /// The note that an earlier replica of the group was dropped here is on stable storage
    /// ([`crate::Replica::wait_for_drop`]).
    DropPersisted,
    /// The record of the [`ReplicaCommand::PersistTrim`] of this index is on stable storage, with all before it.
    TrimPersisted {
        index: Index,
    },
    /// The payloads of a [`ReplicaCommand::Load`], in index order.
    Loaded {
        batches: Vec<(Index, Bytes)>,
    },
    LinkUp {
        server: ServerId,
    },
    LinkDown {
        server: ServerId,
    },
    /// The server's disk refuses writes, or accepts them again.
    StorageFault(bool),
    /// The coordinator has not answered this server for a lease, or answers again.
    CoordinatorSilent(bool),
    /// An order names a later epoch, in which this replica is not the head. It waits for this server's disk.
    Deposed {
        by: Epoch,
    },
    /// A learner that catches up may be sent so many more bytes ([`crate::Replica::pace_catchup`]).
    CatchupAllowance {
        bytes: u64,
    },
    /// A pending commit notice has waited long enough ([`crate::Replica::hold_commit_notices`]).
    CommitNoticeDue,
    /// About a tenth of a second has passed.
    Tick {
        /// Since 1970, for retention by age: not later than the true time, as far as the fleet's clocks can tell.
        /// `None`: the server's clock is in doubt.
        vouched_us: Option<u64>,
    },
}

#[derive(Debug, Clone)]
pub enum ReplicaCommand {
    Send {
        to: ServerId,
        message: peer::Message,
    },
    /// Write the batch to the journal. Answered by [`ReplicaEvent::Persisted`].
    Persist(Batch),
    /// Write the encoded base to the journal: the log begins behind it. Answered by [`ReplicaEvent::Persisted`].
    PersistBase {
        base: Bytes,
        index: Index,
        epoch: Epoch,
    },
    /// Write to the journal that the log was truncated to `index`. The batches behind it must not come back with a
    /// restart ([`crate::Replica::recover_truncation`]). Answered by [`ReplicaEvent::TruncationPersisted`].
    Truncate {
        index: Index,
        number: u64,
    },
    /// Write to the journal that all records of the group before this one mean nothing, and forget where they lie: the
    /// lost group's log is reset. This replica must not get their completions.
    Forget,
    /// Write to the journal that clients trimmed the log up to `index` ([`crate::Replica::recover_trim`]). Answered by
    /// [`ReplicaEvent::TrimPersisted`].
    PersistTrim {
        index: Index,
    },
    /// Read payloads back that were evicted from memory, for a successor. Answered by [`ReplicaEvent::Loaded`].
    Load {
        from_index: Index,
        to_index: Index,
    },
    Ack {
        /// `None`: it is gone.
        client: Option<ClientRef>,
        seq: u64,
        base_offset: Offset,
        entry_count: u32,
        arrival: Arrival,
    },
    Refuse {
        client: ClientRef,
        seq: u64,
        entry_count: u32,
        code: Code,
        happened: Happened,
        retry_after_ms: u32,
    },
    /// Answer an [`ReplicaEvent::Ask`] with the replica's `trim_offset()`, `commit_offset()` and so on, as they are when this
    /// is carried out. A trim refused with `EpochChanged` may have happened all the same.
    Answer {
        client: ClientRef,
        request: u32,
        asked: Asked,
        refused: Option<Code>,
    },
    /// The batches before `first_index` are held no more.
    Trimmed {
        first_index: Index,
    },
    /// The epoch was adopted: report it to the coordinator and to attached clients.
    Adopted {
        epoch: Epoch,
    },
    LearnerCaughtUp {
        learner: ServerId,
    },
}

/// Whether a refused append may have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    No,
    Unknown,
}

/// A question of a client, until it is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub client: ClientRef,
    pub request: u32,
    pub asked: Asked,
}

impl Question {
    pub fn answer(self, refused: Option<Code>) -> ReplicaCommand {
        ReplicaCommand::Answer {
            client: self.client,
            request: self.request,
            asked: self.asked,
            refused,
        }
    }
}
