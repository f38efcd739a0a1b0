//! Feeding the successor: answering where the logs part, then streaming from there within a window.

use bytes::Bytes;
use quorate_types::limits::CATCHUP_WINDOW_BYTES;
use quorate_types::planted::{self, Bug};
use quorate_types::{Epoch, Index, Role, ServerId};
use quorate_wire::{Batch, peer};

use crate::command::Command;
use crate::log::Log;
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
    /// Its weight, or less.
    arrived_weight: u64,
    /// Payloads are being read back from disk.
    loading: bool,
    /// What a notice would have said, when it was last told.
    told: Option<peer::ChainNotice>,
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
    /// The last of the head's rounds that has reached it.
    pub round: u64,
    /// The same two for what clients trimmed.
    trim_level: Index,
    trim_needed: Index,
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
                arrived_weight: 0,
                loading: false,
                told: None,
            };
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
        let may_answer = self.is_settled() || planted::on(Bug::UnsettledAnswers);
        if epoch > self.epoch() || (epoch == self.epoch() && !may_answer) {
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
            arrived_weight: 0,
            loading: false,
            told: None,
        });
        let reply = peer::SyncReply {
            nonce: request.nonce,
            common_index,
            last_index: self.log.last_index(),
            commit_index: self.commit_index,
            base,
        };
        out.push(Command::Send {
            to: from,
            message: peer::Message::SyncReply(reply),
        });
    }

    /// The successor, what was sent to it, and what it has of that as far as is known here. A replica of the chain
    /// has what is committed.
    pub(crate) fn sent_and_arrived(&self) -> Option<(ServerId, Index, Index)> {
        let Downstream::Streaming(stream) = &self.downstream else {
            return None;
        };
        let committed = if self.feeds_learner { 0 } else { self.commit_index };
        Some((stream.server, stream.next - 1, stream.arrived.max(committed)))
    }

    /// The first index that the successor may still need from memory or disk; unbounded when it must ask: then it
    /// gets a base, if it needs one.
    pub(crate) fn needed_downstream(&self) -> Index {
        self.sent_and_arrived()
            .map_or(Index::MAX, |(_, sent, arrived)| sent.min(arrived) + 1)
    }

    /// From now on a learner is sent no more than [`crate::Event::CatchupAllowance`] allows, and as much as is
    /// appended meanwhile: so what it lacks shrinks at the rate of the allowance. One that is about to join is not
    /// held back, since commitment waits for it.
    pub fn pace_catchup(&mut self) {
        self.catchup_allowance = Some(0);
    }

    fn is_paced(&self) -> bool {
        self.catchup_allowance.is_some() && self.feeds_learner && self.joining.is_none()
    }

    pub(crate) fn allow_catchup(&mut self, bytes: u64) {
        if let Some(allowance) = &mut self.catchup_allowance {
            // What a learner cannot take now is not saved up for it.
            *allowance = allowance
                .saturating_add_unsigned(bytes)
                .min(CATCHUP_WINDOW_BYTES as i64);
        }
    }

    /// Bytes that a learner could be sent now, if they were allowed.
    pub fn catchup_wanted_bytes(&self) -> u64 {
        let Downstream::Streaming(stream) = &self.downstream else {
            return 0;
        };
        let allowance = self
            .catchup_allowance
            .filter(|_| self.is_paced() && !stream.loading);
        let Some(debt) = allowance
            .filter(|allowance| *allowance <= 0)
            .map(i64::unsigned_abs)
        else {
            return 0;
        };
        let sent = self.log.weight(stream.next - 1);
        let window = (self.log.weight(stream.arrived) + CATCHUP_WINDOW_BYTES).saturating_sub(sent);
        let lacks = self.log.weight(self.log.last_index()).saturating_sub(sent);
        match window.min(lacks) {
            0 => 0,
            bytes => debt + bytes,
        }
    }

    /// The last batch may overdraw it.
    fn spend_allowance(&mut self, bytes: u64) {
        if self.is_paced()
            && let Some(allowance) = &mut self.catchup_allowance
        {
            *allowance = allowance.saturating_sub_unsigned(bytes);
        }
    }

    /// To whom this replica sends its log at present.
    pub fn feeds(&self) -> Option<ServerId> {
        match &self.downstream {
            Downstream::Streaming(stream) => Some(stream.server),
            _ => None,
        }
    }

    /// Whether the way to the successor, which other groups use as well, is full: then [`Replica::flush`] sends it no
    /// batches. To be called again, and flushed, when there is room.
    pub fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Sends what the successor lacks, as far as its window allows.
    pub(crate) fn pump(&mut self, out: &mut Vec<Command>) {
        if self.is_held {
            return;
        }
        let notice = self.notice();
        let is_paced = self.is_paced();
        let Downstream::Streaming(stream) = &mut self.downstream else {
            return;
        };
        let last_index = self.log.last_index();
        while !stream.loading && stream.next <= last_index {
            let sent = self.log.weight(stream.next - 1);
            if !stream.has_window(sent, &self.log) {
                return;
            }
            let allowance = self.catchup_allowance.filter(|_| is_paced);
            if allowance.is_some_and(|allowance| allowance <= 0) {
                return;
            }
            let stored = self
                .log
                .get(stream.next)
                .expect("what the successor needs is not trimmed");
            let Some(payload) = stored.payload.clone() else {
                stream.loading = true;
                let to_index = self.log.load_end(
                    stream.next,
                    LOAD_BATCHES_MAX,
                    allowance.map_or(CATCHUP_WINDOW_BYTES, i64::unsigned_abs),
                );
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
            stream.send(batch, notice, last_index, out);
            if is_paced && let Some(allowance) = &mut self.catchup_allowance {
                // The last batch may overdraw it.
                *allowance = allowance.saturating_sub_unsigned(self.log.weight(stream.next - 1) - sent);
            }
        }
    }

    pub(crate) fn loaded(&mut self, batches: Vec<(Index, Bytes)>, out: &mut Vec<Command>) {
        let notice = self.notice();
        let last_index = self.log.last_index();
        let Downstream::Streaming(stream) = &mut self.downstream else {
            return;
        };
        stream.loading = false;
        let sent = self.log.weight(stream.next - 1);
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
            stream.send(batch, notice, last_index, out);
        }
        let bytes = self.log.weight(stream.next - 1) - sent;
        self.spend_allowance(bytes);
    }

    /// What the successor should know now.
    fn notice(&self) -> peer::ChainNotice {
        peer::ChainNotice {
            commit_index: self.commit_index,
            storage_fault: self.fault(),
            trim_index: self.trim.target,
            trim_asked: self.trim.asked,
            round: self.rounds.seen,
        }
    }

    /// From now on the successor is told of a commitment by the next batch, or after [`crate::Event::NoticeDue`], which
    /// [`Replica::owes_notice`] asks for: appends that follow one another need no message for it. Nothing waits for it
    /// but readers there. All else is told at once.
    pub fn hold_notices(&mut self) {
        self.holds_notices = true;
    }

    /// The successor has not been told what is committed, and no batch that could carry it is there.
    pub fn owes_notice(&self) -> bool {
        self.owes_notice
    }

    /// What no batch carried.
    pub(crate) fn tell_successor(&mut self, out: &mut Vec<Command>) {
        let may_wait = self.holds_notices && !std::mem::take(&mut self.is_notice_due);
        self.owes_notice = false;
        let now = self.notice();
        let Downstream::Streaming(stream) = &mut self.downstream else {
            return;
        };
        if stream.told == Some(now) {
            return;
        }
        let of_commit = |told: peer::ChainNotice| peer::ChainNotice {
            commit_index: now.commit_index,
            ..told
        };
        if may_wait && stream.told.map(of_commit) == Some(now) {
            self.owes_notice = true;
            return;
        }
        stream.told = Some(now);
        out.push(Command::Send {
            to: stream.server,
            message: peer::Message::ChainNotice(now),
        });
    }

    /// Takes note of how far the successor is, and reports a learner that may join now.
    pub(crate) fn progress(&mut self, from: ServerId, progress: peer::Progress, out: &mut Vec<Command>) {
        let peer::Progress {
            index,
            level_with_sender,
            round,
            trim_level,
        } = progress;
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
        // This replica had its part in all that was committed so far, in this epoch and before: so that lies within
        // what it has.
        let needed = self.own_level();
        let joining = self.joining.get_or_insert(Joining {
            learner: from,
            confirmed: 0,
            needed,
            round: 0,
            trim_level: 0,
            // What was acknowledged in earlier epochs is durable here; what others have need not have been told yet.
            trim_needed: self.trim.durable,
        });
        let is_news = !joining.may_join() || joining.confirmed == 0;
        joining.confirmed = joining.confirmed.max(index);
        joining.round = joining.round.max(round);
        joining.trim_level = joining.trim_level.max(trim_level);
        if is_news {
            self.report_learner(out);
        }
    }

    /// The level that the head may commit by, for this replica's part: what it has and, once a learner is about to join,
    /// the learner too.
    pub(crate) fn level_here(&self) -> Index {
        if planted::on(Bug::LearnerNotWaitedFor) {
            return self.own_level();
        }
        self.own_level()
            .min(self.joining.map_or(Index::MAX, |j| j.confirmed))
    }

    /// The same of what clients trimmed.
    pub(crate) fn trim_level_here(&self) -> Index {
        self.trim
            .durable
            .min(self.joining.map_or(Index::MAX, |j| j.trim_level))
    }

    /// Tells the coordinator (again at each tick, it may have missed it) that the learner may join.
    pub(crate) fn report_learner(&self, out: &mut Vec<Command>) {
        if let Some(joining) = self.joining.filter(Joining::may_join) {
            out.push(Command::LearnerCaughtUp {
                learner: joining.learner,
            });
        }
    }
}

impl Joining {
    fn may_join(&self) -> bool {
        let lacks = u64::from(planted::on(Bug::CatchUpOneShort));
        self.confirmed + lacks >= self.needed && self.trim_level >= self.trim_needed
    }
}

impl Stream {
    /// Whether more may be on its way to the successor, beyond what was `sent`. Neither what has arrived nor its weight
    /// ever shrinks, so that what was known before suffices as long as it leaves room.
    fn has_window(&mut self, sent: u64, log: &Log) -> bool {
        let is_open = |arrived_weight: u64| sent.saturating_sub(arrived_weight) < CATCHUP_WINDOW_BYTES;
        if !is_open(self.arrived_weight) {
            self.arrived_weight = log.weight(self.arrived);
        }
        is_open(self.arrived_weight)
    }

    fn send(&mut self, batch: Batch, now: peer::ChainNotice, last_index: Index, out: &mut Vec<Command>) {
        assert_eq!(batch.header.index, self.next, "the successor is fed in order");
        self.next += 1;
        let peer::ChainNotice {
            commit_index,
            storage_fault,
            ..
        } = now;
        if let Some(told) = &mut self.told {
            (told.commit_index, told.storage_fault) = (commit_index, storage_fault);
        }
        let message = peer::Replicate {
            commit_index,
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
