//! One stream of batches to the successor, in order, within its window.

use bytes::Bytes;
use quorate_types::limits::CATCHUP_WINDOW_BYTES;
use quorate_types::{Index, ServerId};
use quorate_wire::{Batch, BatchHeader, TraceContext, peer};

use crate::command::ReplicaCommand;
use crate::log::Log;

#[derive(Debug)]
pub(crate) struct Stream {
    server: ServerId,
    /// The batch to send next.
    next: Index,
    /// The successor has said to hold this.
    arrived: Index,
    /// The weight up to `arrived`, or less.
    arrived_weight: u64,
    /// Payloads are being read back from disk.
    is_loading: bool,
    /// The last notice, with what batches have said since.
    known: Option<peer::ChainNotice>,
}

impl Stream {
    /// Both logs agree up to `index`.
    pub fn behind(server: ServerId, index: Index) -> Self {
        Self {
            server,
            next: index + 1,
            arrived: index,
            arrived_weight: 0,
            is_loading: false,
            known: None,
        }
    }

    pub fn server(&self) -> ServerId {
        self.server
    }

    pub fn next(&self) -> Index {
        self.next
    }

    pub fn sent(&self) -> Index {
        self.next - 1
    }

    pub fn arrived(&self) -> Index {
        self.arrived
    }

    pub fn hear_arrived(&mut self, index: Index) {
        self.arrived = self.arrived.max(index);
    }

    pub fn is_loading(&self) -> bool {
        self.is_loading
    }

    /// Whether more may be on its way to the successor, beyond the weight `sent`. Neither `arrived` nor its weight ever
    /// shrinks, so an earlier weight suffices as long as it leaves room.
    pub fn has_window(&mut self, sent: u64, log: &Log) -> bool {
        let is_open = |arrived_weight: u64| sent.saturating_sub(arrived_weight) < CATCHUP_WINDOW_BYTES;
        if !is_open(self.arrived_weight) {
            self.arrived_weight = log.weight(self.arrived);
        }
        is_open(self.arrived_weight)
    }

    pub fn load(&mut self, to_index: Index, out: &mut Vec<ReplicaCommand>) {
        self.is_loading = true;
        out.push(ReplicaCommand::Load {
            from_index: self.next,
            to_index,
        });
    }

    pub fn end_loading(&mut self) {
        self.is_loading = false;
    }

    /// Takes the batch in parts: it is put together in the message, and moved once.
    #[inline]
    pub fn send(
        &mut self,
        header: &BatchHeader,
        payload: Bytes,
        trace: &Option<TraceContext>,
        now: &peer::ChainNotice,
        last_index: Index,
        out: &mut Vec<ReplicaCommand>,
    ) {
        assert_eq!(header.index, self.next, "the successor is fed in order");
        self.next += 1;
        if let Some(known) = &mut self.known {
            (known.commit_index, known.storage_fault) = (now.commit_index, now.storage_fault);
        }
        out.push(ReplicaCommand::Send {
            to: self.server,
            message: peer::Message::Replicate(peer::Replicate {
                commit_index: now.commit_index,
                last_index,
                storage_fault: now.storage_fault,
                batch: Batch {
                    header: *header,
                    payload,
                    trace: *trace,
                },
            }),
        });
    }

    pub fn knows(&self, notice: &peer::ChainNotice) -> bool {
        self.known.as_ref() == Some(notice)
    }

    /// Whether the successor knows all of the notice but its commit index.
    pub fn lacks_only_commit(&self, notice: &peer::ChainNotice) -> bool {
        self.known.is_some_and(|known| {
            let with_commit = peer::ChainNotice {
                commit_index: notice.commit_index,
                ..known
            };
            with_commit == *notice
        })
    }

    pub fn notify(&mut self, notice: peer::ChainNotice, out: &mut Vec<ReplicaCommand>) {
        self.known = Some(notice);
        out.push(ReplicaCommand::Send {
            to: self.server,
            message: peer::Message::ChainNotice(notice),
        });
    }
}
