//! Feeding the successor: answering where the logs part, then streaming from there within a window.

use bytes::Bytes;
use quorate_types::limits::CATCHUP_WINDOW_BYTES;
use quorate_types::{Epoch, Index, Role, ServerId};
use quorate_wire::{Batch, peer};

use crate::command::Command;
use crate::replica::Replica;

/// Batches read back from disk at once for a successor.
const LOAD_BATCHES_MAX: u64 = 256;

#[derive(Debug)]
pub(crate) enum Downstream {
    None,
    /// The successor has not asked in this epoch, or its link broke.
    Awaiting,
    Streaming(Stream),
}

#[derive(Debug)]
pub(crate) struct Stream {
    server: ServerId,
    /// The batch to send next.
    next: Index,
    /// What the successor said that it holds.
    arrived: Index,
    /// Payloads are being read back from disk.
    loading: bool,
    /// Commit index, level and storage fault as last told.
    told: Option<(Index, Index, bool)>,
}

/// A learner that may join the chain as its new tail. From here on, to the end of the epoch, nothing is
/// committed that it lacks: whoever is in the chain of the next epoch has all that was committed before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joining {
    learner: ServerId,
    /// What it has (durably, in a persistent group), as last told.
    confirmed: Index,
    /// What may have been committed without it: it must have this to join.
    needed: Index,
}

impl Downstream {
    pub fn awaiting(successor: Option<ServerId>) -> Self {
        if successor.is_some() {
            Downstream::Awaiting
        } else {
            Downstream::None
        }
    }

    pub fn link_down(&mut self, server: ServerId) {
        if matches!(self, Downstream::Streaming(s) if s.server == server) {
            *self = Downstream::Awaiting;
        }
    }

    pub fn progress(&mut self, from: ServerId, index: Index) {
        if let Downstream::Streaming(stream) = self
            && stream.server == from
        {
            stream.arrived = stream.arrived.max(index);
        }
    }

    /// This replica's own log was replaced by one behind a base. A successor that it fed sees a gap, or that it is
    /// behind, and asks again.
    pub fn restart_behind(&mut self, base_index: Index) {
        if let Downstream::Streaming(stream) = self {
            let server = stream.server;
            *stream = Stream {
                server,
                next: base_index + 1,
                arrived: base_index,
                loading: false,
                told: None,
            };
        }
    }

    /// The first index that the successor may still need from memory or disk; unbounded when it must ask.
    pub fn needed_from(&self) -> Index {
        match self {
            Downstream::Streaming(stream) => stream.next.min(stream.arrived + 1),
            _ => Index::MAX,
        }
    }
}

impl Replica {
    pub(crate) fn sync_request(
        &mut self,
        from: ServerId,
        epoch: Epoch,
        request: peer::SyncRequest,
        out: &mut Vec<Command>,
    ) {
        if epoch < self.epoch() {
            return;
        }
        self.parked = Some((from, epoch, request));
        self.answer_parked(out);
    }

    /// Answers the successor once this replica stands: its own log settled, in the epoch of the request.
    pub(crate) fn answer_parked(&mut self, out: &mut Vec<Command>) {
        let Some((from, epoch, request)) = self.parked.take() else {
            return;
        };
        let successor = self
            .config
            .as_ref()
            .and_then(|c| c.successor_of(self.me))
            .map(|m| m.server_id);
        if epoch > self.epoch() || (epoch == self.epoch() && !self.is_settled()) {
            self.parked = Some((from, epoch, request));
            return;
        }
        if epoch < self.epoch() || successor != Some(from) {
            return;
        }
        let (common_index, base) = match self.log.common_index(request.last_index, &request.history) {
            Some(index) => (index, None),
            None => (self.log.base().index, Some(self.log.base().encode())),
        };
        self.downstream = Downstream::Streaming(Stream {
            server: from,
            next: common_index + 1,
            arrived: common_index,
            loading: false,
            told: None,
        });
        let reply = peer::SyncReply {
            nonce: request.nonce,
            common_index,
            last_index: self.log.last_index(),
            commit_index: self.commit_index,
            level: self.level(),
            base,
        };
        out.push(Command::Send {
            to: from,
            message: peer::Message::SyncReply(reply),
        });
    }

    /// Sends what the successor lacks, as far as its window allows.
    pub(crate) fn pump(&mut self, out: &mut Vec<Command>) {
        let (commit_index, level, fault) = (self.commit_index, self.level(), self.fault());
        let Downstream::Streaming(stream) = &mut self.downstream else {
            return;
        };
        let last_index = self.log.last_index();
        let arrived_weight = self.log.weight(stream.arrived);
        while !stream.loading && stream.next <= last_index {
            if self.log.weight(stream.next - 1).saturating_sub(arrived_weight) >= CATCHUP_WINDOW_BYTES {
                return;
            }
            let stored = self
                .log
                .get(stream.next)
                .expect("what the successor needs is not trimmed");
            let Some(payload) = stored.payload.clone() else {
                stream.loading = true;
                let to_index = self
                    .log
                    .load_end(stream.next, LOAD_BATCHES_MAX, CATCHUP_WINDOW_BYTES);
                out.push(Command::Load {
                    from_index: stream.next,
                    to_index,
                });
                return;
            };
            let batch = Batch {
                header: stored.header,
                payload,
                trace: stored.trace,
            };
            stream.send(batch, commit_index, level, last_index, fault, out);
        }
    }

    pub(crate) fn loaded(&mut self, batches: Vec<(Index, Bytes)>, out: &mut Vec<Command>) {
        let (commit_index, level, fault) = (self.commit_index, self.level(), self.fault());
        let last_index = self.log.last_index();
        let Downstream::Streaming(stream) = &mut self.downstream else {
            return;
        };
        stream.loading = false;
        for (index, payload) in batches {
            let header = self.log.header(index).copied();
            let Some(header) = header.filter(|_| index == stream.next) else {
                continue;
            };
            let batch = Batch {
                header,
                payload,
                trace: None,
            };
            stream.send(batch, commit_index, level, last_index, fault, out);
        }
    }

    /// Commit index and level, when no batch carried them.
    pub(crate) fn tell_successor(&mut self, out: &mut Vec<Command>) {
        let now = (self.commit_index, self.level(), self.fault());
        let Downstream::Streaming(stream) = &mut self.downstream else {
            return;
        };
        if stream.told == Some(now) {
            return;
        }
        stream.told = Some(now);
        let (commit_index, level, storage_fault) = now;
        let message = peer::Message::ChainNotice {
            commit_index,
            level,
            storage_fault,
        };
        out.push(Command::Send {
            to: stream.server,
            message,
        });
    }

    /// Takes note of how far the successor is, and reports a learner that may join now.
    pub(crate) fn progress(
        &mut self,
        from: ServerId,
        index: Index,
        level_with_sender: bool,
        out: &mut Vec<Command>,
    ) {
        self.downstream.progress(from, index);
        let closes_ring = matches!(self.role, Role::Tail | Role::Sole);
        let is_learner = self
            .config
            .as_ref()
            .is_some_and(|c| c.role_of(from) == Role::Learner);
        let successor = self.config.as_ref().and_then(|c| c.successor_of(self.me));
        let is_next = successor.is_some_and(|m| m.server_id == from);
        if !(level_with_sender && closes_ring && is_learner && is_next) {
            return;
        }
        // Every replica before this one had its part in what was committed so far, this one too: so all of it,
        // in this epoch and before, lies within this level.
        let needed = self.level();
        let joining = self.joining.get_or_insert(Joining {
            learner: from,
            confirmed: 0,
            needed,
        });
        let is_news = joining.confirmed < joining.needed || joining.confirmed == 0;
        joining.confirmed = joining.confirmed.max(index);
        if is_news {
            self.report_learner(out);
        }
    }

    /// The level that the head may commit by: what the chain has and, once a learner is about to join, it too.
    pub(crate) fn ring_level_here(&self) -> Index {
        self.level().min(self.joining.map_or(Index::MAX, |j| j.confirmed))
    }

    /// Tells the coordinator (again at each tick, it may have missed it) that the learner may join.
    pub(crate) fn report_learner(&self, out: &mut Vec<Command>) {
        if let Some(Joining {
            learner,
            confirmed,
            needed,
        }) = self.joining
            && confirmed >= needed
        {
            out.push(Command::LearnerCaughtUp { learner });
        }
    }
}

impl Stream {
    fn send(
        &mut self,
        batch: Batch,
        commit_index: Index,
        level: Index,
        last_index: Index,
        storage_fault: bool,
        out: &mut Vec<Command>,
    ) {
        assert_eq!(batch.header.index, self.next, "the successor is fed in order");
        self.next += 1;
        self.told = Some((commit_index, level, storage_fault));
        let message = peer::Replicate {
            commit_index,
            level,
            last_index,
            storage_fault,
            batch,
        };
        out.push(Command::Send {
            to: self.server,
            message: peer::Message::Replicate(message),
        });
    }
}
