//! Messages to a shard from other threads.
//!
//! The channel is unbounded. Messages are bounded where they begin: by windows of clients and peers, by the journal's
//! buffer, by one message for each epoch, by the backlog of each client ([`crate::backlog`]).

use std::ops::Range;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use quorate_burst::exchange::GroupLoad;
use quorate_chain::{ClientRef, Replica};
use quorate_group::{Grant, Request, Work};
use quorate_group_log::{Answer, LogLocation};
use quorate_journal::Lsn;
use quorate_recovery::Places;
use quorate_telemetry::ServerCounts;
use quorate_telemetry::usage::Sample;
use quorate_transport::Detached;
use quorate_types::control::{GroupFlow, GroupShare, PartitionWant};
use quorate_types::{Epoch, GroupConfig, GroupId, ServerId};
use quorate_wire::{client, peer};
use tokio::sync::oneshot;

use crate::backlog::Backlog;
use crate::connection_slots::ConnectionSlot;

pub enum ShardMessage {
    Hosting(Hosting),
    Journal(quorate_journal::Event),
    Logs(LogsMessage),
    Link(LinkMessage),
    Client(ClientMessage),
    Burst(BurstMessage),
    Share(ShareMessage),
    Sample(oneshot::Sender<ShardSample>),
    /// The work that groups here were since this was last asked.
    Work(oneshot::Sender<Work>),
    Stop,
}

/// Groups that come and go.
pub enum Hosting {
    Configure(Box<GroupConfig>),
    /// It means nothing for a group that is in a later epoch here.
    Drop {
        group_id: GroupId,
        epoch: Epoch,
    },
    /// The order of this epoch, in which the server is not the head, waits for the disk.
    Deposed {
        group_id: GroupId,
        by: Epoch,
    },
    /// Nothing of the group is left anywhere; its clients shall hear so.
    Lost(GroupId),
    /// All of the group is in quarantine, in this epoch; its clients shall hear so.
    Quarantined {
        group_id: GroupId,
        epoch: Epoch,
    },
    Recovered {
        group_id: GroupId,
        replica: Box<Replica>,
        places: Places,
        /// It may lack records that had been durable.
        is_damaged: bool,
    },
}

/// From the group logs.
pub enum LogsMessage {
    /// Records that lie in their group's log now.
    Moved {
        group_id: GroupId,
        records: Vec<(Lsn, LogLocation)>,
    },
    /// Records that cannot be read from the journal when they are to be copied.
    LostInJournal {
        lsns: Range<Lsn>,
        answer: mpsc::Sender<Answer>,
    },
    /// A record of a group's log that the scrubber cannot read. The answer: whether it is one that is needed.
    DamagedInLog {
        group_id: GroupId,
        place: LogLocation,
        answer: mpsc::Sender<bool>,
    },
    /// Records that state where a log begins or ends were lost: this group's, or some group's.
    Restate(Option<GroupId>),
}

pub enum LinkMessage {
    /// A link opened by a peer and accepted here.
    Accepted {
        server: ServerId,
        stream: Detached,
        rest: Bytes,
        /// The version that both speak.
        version: u16,
    },
    /// Open a link to this peer and keep it, while any group needs it.
    Dial(ServerId),
    Up(ServerId),
    Down(ServerId),
    /// For a group of this shard, from a link of another.
    FromPeer {
        from: ServerId,
        envelope: peer::Envelope,
    },
    /// For a link of this shard, from a group of another.
    ToPeer {
        to: ServerId,
        envelope: peer::Envelope,
    },
}

pub enum ClientMessage {
    /// A connection whose HELLO was read; `rest` was read beyond it.
    Accepted {
        stream: Detached,
        rest: Bytes,
        slot: ConnectionSlot,
        /// The version that both speak.
        version: u16,
    },
    /// For a group of this shard, from a connection of another; `weight` was added to the connection's backlog.
    Request {
        group_id: GroupId,
        client: ClientRef,
        request: Request,
        backlog: Arc<Backlog>,
        weight: usize,
    },
    /// For a connection of this shard, from a group of another; `weight` was added to the connection's backlog.
    Answer {
        client: ClientRef,
        message: client::Message,
        weight: usize,
    },
    /// For a connection of this shard: another shard reads entries from the disk for it.
    FromDisk {
        client: ClientRef,
        entries: u64,
        bytes: u64,
    },
    /// To a connection of this shard: the group, of another, did not take the channel; `number` is its ATTACH's.
    NotAttached { client: ClientRef, number: u64 },
    /// The group, of whichever shard, is in quarantine: nobody answers what connections wait for.
    Quarantined { group_id: GroupId },
    /// Credentials were revoked: connections that showed one are closed.
    Revoked,
    /// A connection of this shard costs another too much.
    Close { connection: u64 },
}

/// From the task that shares out idle capacity.
pub enum BurstMessage {
    /// The groups' loads since this was last asked.
    Loads(oneshot::Sender<Vec<GroupLoad>>),
    Grant {
        group_id: GroupId,
        grant: Grant,
    },
    /// The group is assumed to use this rate of its reservation; `None`: all.
    Assume {
        group_id: GroupId,
        epoch: Epoch,
        rate_per_s: Option<u64>,
    },
    /// For a peer, if it takes such frames.
    Frame {
        to: ServerId,
        bytes: Bytes,
    },
}

/// About shares of projects' guarantees.
pub enum ShareMessage {
    /// Wants and shares of the groups that were told a share.
    Flows(oneshot::Sender<Vec<GroupFlow>>),
    /// Rates that partitions want whose heads are here.
    Wants(oneshot::Sender<Vec<PartitionWant>>),
    /// A group's share from now on.
    Told(GroupShare),
    /// No group has a share any more.
    Lapsed,
}

/// A shard's answer each second.
#[derive(Default)]
pub struct ShardSample {
    pub groups: Vec<Sample>,
    /// Counts of the shard as a whole, for metrics.
    pub counts: ServerCounts,
}
