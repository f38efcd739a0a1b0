//! What happens to a replica, and what it wants done.

use bytes::Bytes;
use quorate_types::{Code, Epoch, GroupConfig, Index, Micros, Offset, ServerId};
use quorate_wire::{Batch, TraceContext, peer};

/// Where an answer goes: a connection of this server and the client's channel on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// When the request arrived, for latency.
    pub received_us: Micros,
    /// Wall clock for the batch's timestamp.
    pub wall_us: u64,
    pub trace: Option<TraceContext>,
}

/// What a client may ask of a group besides entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Discard all whole batches that end at or before the offset.
    Trim { before_offset: Offset },
    /// Where the log ends. At the head the answer comes when it is known to be still the head.
    Status,
}

#[derive(Debug, Clone)]
pub enum Event {
    Configure(GroupConfig),
    Append(AppendRequest),
    /// Answered by [`Command::Answer`].
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
    /// The batch (or base) that `epoch` ordered at `index`, and all before it, are on stable storage.
    Persisted {
        index: Index,
        epoch: Epoch,
    },
    /// The record asked for by the [`Command::Cut`] of this number, and all before it, are on stable storage.
    CutPersisted {
        number: u64,
    },
    /// The note that the group was dropped here, before this replica, is on stable storage
    /// ([`crate::Replica::stand_behind_drop`]).
    DropPersisted,
    /// The record asked for by the [`Command::PersistTrim`] of this index, and all before it, are on stable storage.
    TrimPersisted {
        index: Index,
    },
    /// Payloads asked for by [`Command::Load`], in index order.
    Loaded {
        batches: Vec<(Index, Bytes)>,
    },
    LinkUp {
        server: ServerId,
    },
    LinkDown {
        server: ServerId,
    },
    /// The server's disk refuses writes, or takes them again.
    StorageFault(bool),
    /// The coordinator has not answered this server for a lease, or answers again.
    CoordinatorSilent(bool),
    /// So many more bytes may be sent to a learner that catches up ([`crate::Replica::pace_catchup`]).
    CatchupAllowance {
        bytes: u64,
    },
    /// What was held back for the next batch to carry has waited long enough ([`crate::Replica::hold_notices`]).
    NoticeDue,
    /// A tenth of a second or so has passed. `wall_us` since 1970, for retention by age.
    Tick {
        wall_us: u64,
    },
}

#[derive(Debug, Clone)]
pub enum Command {
    Send {
        to: ServerId,
        message: peer::Message,
    },
    /// Write the batch to the journal; answer with [`Event::Persisted`].
    Persist(Batch),
    /// Write the base (encoded) to the journal: the log begins behind it.
    PersistBase {
        base: Bytes,
        index: Index,
        epoch: Epoch,
    },
    /// Write to the journal that the log ends at `index`: what lay behind it was cut and must not come back
    /// with a restart ([`crate::Replica::recover_cut`]). Answer with [`Event::CutPersisted`].
    Cut {
        index: Index,
        number: u64,
    },
    /// Write to the journal that all records of the group before this one mean nothing, and forget where they lie: the
    /// group is lost, and begins anew. Their completions are to be kept from this replica.
    Forget,
    /// Write to the journal that clients trimmed the log up to `index` ([`crate::Replica::recover_trim`]). Answer
    /// with [`Event::TrimPersisted`].
    PersistTrim {
        index: Index,
    },
    /// Read payloads that were evicted from memory, for a successor that catches up.
    Load {
        from_index: Index,
        to_index: Index,
    },
    Ack {
        client: ClientRef,
        seq: u64,
        base_offset: Offset,
        entry_count: u32,
        received_us: Micros,
    },
    Refuse {
        client: ClientRef,
        seq: u64,
        entry_count: u32,
        code: Code,
        happened: Happened,
        retry_after_ms: u32,
    },
    /// To [`Event::Ask`]. What the answer tells is read from the replica when this is carried out: its
    /// `trim_offset()`, its `commit_offset()` and so on. A refused trim may have happened all the same when the
    /// code is `EpochChanged`.
    Answer {
        client: ClientRef,
        request: u32,
        asked: Asked,
        refused: Option<Code>,
    },
    /// Committed entries became readable.
    Committed,
    /// What lies before `first_index` is held no more.
    Trimmed {
        first_index: Index,
    },
    /// The epoch was adopted: tell the coordinator, and attached clients.
    Adopted {
        epoch: Epoch,
    },
    LearnerCaughtUp {
        learner: ServerId,
    },
}

/// What a refusal says about the append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    No,
    Unknown,
}
