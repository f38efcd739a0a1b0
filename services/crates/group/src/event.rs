//! Events of a group.

use bytes::Bytes;
use quorate_chain::{ClientRef, ReadPage};
use quorate_types::control::GroupShare;
use quorate_types::{Epoch, GroupConfig, Index, Permission, ServerId};
use quorate_wire::{TraceContext, client, peer};

use crate::grant::Grant;

/// Everything that a shell tells a group.
#[derive(Debug)]
pub enum Event {
    /// Boxed: it is rare, and events are moved as wide as the widest.
    Configure(Box<GroupConfig>),
    Request {
        client: ClientRef,
        request: Request,
    },
    Peer {
        from: ServerId,
        epoch: Epoch,
        message: peer::Message,
    },
    /// Events that concern the replica alone: records that are durable, links, the disk's state, allowances.
    Replica(quorate_chain::ReplicaEvent),
    /// Payloads asked for by [`crate::Output::Load`], in index order.
    Loaded {
        generation: Generation,
        batches: Vec<(Index, Bytes)>,
    },
    /// The outcomes of a [`crate::Output::ReadPage`], one for each index that it named, in that order.
    PageRead {
        read: PageRead,
        payloads: Vec<Result<Bytes, Lack>>,
    },
    /// Records on disk whose checksums are wrong. A copier of the journal may wait for one.
    Damaged(Vec<(Index, Option<CopierId>)>),
    Grant(Grant),
    /// The rate of its reservation, in requests/s, that the group is assumed to use; `None`: all of it.
    Assume {
        epoch: Epoch,
        rate_per_s: Option<u64>,
    },
    /// The group's share of its project's guarantee, from a coordinator; `None`: none was heard for so long that it has no
    /// share any more.
    Share(Option<GroupShare>),
    /// Records that state where the log begins and ends were lost.
    Restate,
    /// A tenth of a second or so has passed.
    Tick {
        is_coordinator_silent: bool,
    },
    /// The group leaves this server.
    Leave,
}

/// A client's request to a group.
#[derive(Debug)]
pub enum Request {
    Attach {
        /// Distinguishes the attachments of one connection.
        number: u64,
        /// 0: none; such a client cannot append.
        session: u64,
        permission: Permission,
    },
    Message {
        message: client::Message,
        trace: Option<TraceContext>,
    },
    /// The channel was detached, or its connection is gone.
    Gone,
}

/// The log that a read was asked of. Another hosting of the group, or another log after a reset, has another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Generation {
    /// Given by the shell, another one each time that the group comes to the server.
    pub hosting: u64,
    pub resets: u32,
}

/// A page of which some payloads are read from disk before it is sent.
#[derive(Debug)]
pub struct PageRead {
    pub(crate) generation: Generation,
    pub(crate) page: ReadPage,
    pub reader: Reader,
    /// How often its records were looked for where they no longer were.
    pub(crate) moves: u32,
}

impl PageRead {
    /// The batches whose payloads the shell has to read.
    pub fn lacking(&self) -> impl Iterator<Item = Index> {
        let pieces = self.page.pieces.iter();
        pieces
            .filter(|piece| piece.payload.is_none())
            .map(|piece| piece.index)
    }

    /// Their entries, and payload bytes.
    pub fn lacking_size(&self) -> (u64, u64) {
        let pieces = self.page.pieces.iter().filter(|piece| piece.payload.is_none());
        pieces.fold((0, 0), |(entries, bytes), piece| {
            (
                entries + u64::from(piece.entry_count),
                bytes + u64::from(piece.payload_len),
            )
        })
    }
}

/// The reader that waits for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    pub client: ClientRef,
    pub request: u32,
    pub(crate) is_subscription: bool,
    /// The log that it was asked of, and its place among all reads of the hosting. A client that attaches its channel
    /// again may use a number again.
    pub(crate) generation: Generation,
    pub(crate) serial: u64,
}

/// Why a payload was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// It lies elsewhere by now, or is trimmed.
    Moved,
    /// The group's book of places does not know it: it was trimmed.
    Trimmed,
    Damaged,
    Other(String),
}

/// A copier of the journal that waits for a damaged record; the shell knows which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopierId(pub u64);
