//! Outputs of a group, for its shell to carry out.

use std::ops::Range;

use bytes::Bytes;
use quorate_chain::{ClientRef, ReplicaCommand};
use quorate_types::control::ToCoordinator;
use quorate_types::{Epoch, Index, Offset, ServerId};
use quorate_wire::{Batch, BatchHeader, client, peer};

use crate::event::{CopierId, Generation, PageRead};
use crate::span::Span;

/// One thing that the shell has to do. Carry outputs out in order.
#[derive(Debug)]
pub enum Output {
    Client {
        client: ClientRef,
        message: client::Message,
    },
    /// Committed batches of one client: a range of [`Outputs::acks`].
    Acked {
        client: ClientRef,
        acks: Range<usize>,
    },
    /// The group did not take the channel of this ATTACH: it is free again before the client gets the message.
    NotAttached {
        client: ClientRef,
        number: u64,
        message: client::Message,
    },
    /// Lost where the link is down: the protocol asks again.
    Peer {
        to: ServerId,
        envelope: peer::Envelope,
    },
    Coordinator(ToCoordinator),
    /// To be written behind all records of the group before it.
    Journal(Record),
    /// The log was lost and is reset: on disk it is another group's from here on. The shell writes that the group
    /// was dropped, and forgets where its records lie.
    ForgetDisk,
    /// Payloads to be read back for a successor; answered by [`crate::Event::Loaded`].
    Load {
        generation: Generation,
        from_index: Index,
        to_index: Index,
    },
    /// Answered by [`crate::Event::PageRead`].
    ReadPage(PageRead),
    /// A peer repairs this batch: read it back and send FETCHED in this epoch, then call [`crate::Turn::end_fetch`].
    ReadForPeer {
        to: ServerId,
        epoch: Epoch,
        header: BatchHeader,
    },
    /// The copier gets the record, or learns how long the damaged payload is.
    Copied {
        copier: CopierId,
        header: BatchHeader,
        payload: Result<Bytes, u32>,
    },
    /// Nothing comes for this copier any more.
    CopierReleased(CopierId),
    /// The payload is right: it is to be written over the damaged record.
    Rewrite {
        header: BatchHeader,
        payload: Bytes,
    },
    /// Something of the group has its time: ask [`crate::Group::next_wake`].
    WakeInTime,
    /// The learner waits for an allowance: ask [`crate::Group::catchup_wanted_bytes`].
    CatchupWanted,
    /// The successor does not know what is committed: send [`quorate_chain::ReplicaEvent::CommitNoticeDue`] in a while.
    CommitNoticePending,
    /// The group uses more of its reservation than was assumed.
    OwnerReturned {
        epoch: Epoch,
    },
    Span(Span),
    Report(Report),
}

/// A record for the journal (`quorate_recovery::record` has its bytes).
#[derive(Debug)]
pub enum Record {
    Batch(Batch),
    Base {
        base: Bytes,
        index: Index,
        epoch: Epoch,
    },
    /// The log ends at the index.
    Truncated {
        index: Index,
        number: u64,
    },
    Trim {
        index: Index,
    },
    /// The log is good up to the index; `is_damaged`: more of it had been durable.
    Repaired {
        index: Index,
        /// The epoch of the batch at the index.
        epoch: Epoch,
        is_damaged: bool,
        /// Batches up to this are gone for readers; the record of that may be missing, too.
        trimmed: Index,
    },
}

impl Record {
    fn bytes(&self) -> usize {
        match self {
            Record::Batch(batch) => batch.payload.len(),
            Record::Base { base, .. } => base.len(),
            _ => 0,
        }
    }
}

/// Lines for the server's log, which operators read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    Adopted {
        epoch: Epoch,
    },
    /// Another configuration of the present epoch came.
    ConfigRefused {
        epoch: Epoch,
    },
    RecordsDamaged {
        records: usize,
        from_index: Index,
        to_index: Index,
    },
    /// `from`: the peer that had it; `None`: it was in memory.
    RecordRepaired {
        index: Index,
        from: Option<ServerId>,
    },
    /// No replica has these records.
    RecordsUnrepaired {
        records: usize,
        from_index: Index,
        to_index: Index,
    },
    /// A page cannot be read.
    PageUnreadable {
        reason: String,
    },
}

/// Outputs of one step or flush, and memory that is used again. A shell keeps one for all groups of a shard.
#[derive(Debug, Default)]
pub struct Outputs {
    pub list: Vec<Output>,
    /// Acks that [`Output::Acked`] points into: client, seq, base offset.
    pub acks: Vec<(ClientRef, u64, Offset)>,
    /// Bytes of records in `list`.
    pub journal_bytes: usize,
    /// The replica's commands; empty between two steps.
    pub(crate) commands: Vec<ReplicaCommand>,
}

/// Acks in one frame, so that its head fits 16 bits of length.
const ACKS_PER_FRAME: usize = 4_000;

impl Outputs {
    /// Forgets what was carried out and keeps the memory.
    pub fn clear(&mut self) {
        self.list.clear();
        self.acks.clear();
        self.journal_bytes = 0;
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn push(&mut self, output: Output) {
        self.list.push(output);
    }

    pub(crate) fn client(&mut self, client: ClientRef, message: client::Message) {
        self.list.push(Output::Client { client, message });
    }

    pub(crate) fn journal(&mut self, record: Record) {
        self.journal_bytes += record.bytes();
        self.list.push(Output::Journal(record));
    }

    /// Puts acks from here on into frames: those of one channel that follow one another share one.
    pub(crate) fn frame_acks(&mut self, from: usize) {
        let mut begin = from;
        while let Some((client, _, _)) = self.acks.get(begin).copied() {
            let rest = &self.acks[begin..];
            let same = rest
                .iter()
                .take(ACKS_PER_FRAME)
                .take_while(|(c, _, _)| *c == client);
            let end = begin + same.count();
            self.list.push(Output::Acked {
                client,
                acks: begin..end,
            });
            begin = end;
        }
    }
}
