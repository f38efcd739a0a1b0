//! Downstream: answering the successor where the logs part, then streaming from there within a window.

mod allowance;
mod joining;
mod notices;
mod stream;

use bytes::Bytes;
use quorate_types::limits::CATCHUP_WINDOW_BYTES;
use quorate_types::planted::{self, Bug};
use quorate_types::{Epoch, Index, ServerId};
use quorate_wire::peer;

use crate::acknowledged::Acknowledged;
use crate::command::ReplicaCommand;
use crate::lag::Reach;
use crate::local_log::LocalLog;
use allowance::Allowance;
use joining::Joining;
use notices::NoticeHold;
use stream::Stream;

/// Batches read back from disk at once for a successor.
const LOAD_BATCHES_MAX: u64 = 256;

#[derive(Debug, Default)]
pub(crate) struct Downstream {
    successor: Option<ServerId>,
    /// The successor is a learner.
    feeds_learner: bool,
    /// `None`: the successor has not asked in this epoch, or its link broke.
    stream: Option<Stream>,
    /// A request that came before this replica could answer it.
    parked: Option<(ServerId, Epoch, peer::SyncRequest)>,
    /// At the end of the chain: the learner about to join in this epoch.
    joining: Option<Joining>,
    allowance: Allowance,
    /// The way to the successor is full.
    is_held: bool,
    notices: NoticeHold,
}

impl Downstream {
    /// The successor has to ask again in a new epoch.
    pub fn begin_epoch(&mut self, successor: Option<ServerId>, is_learner: bool) {
        self.successor = successor;
        self.feeds_learner = is_learner;
        self.stream = None;
        self.joining = None;
    }

    pub fn link_down(&mut self, server: ServerId) {
        self.stream.take_if(|s| s.server() == server);
    }

    /// A learner that catches up begins again: it hears nothing, asks, and gets the base that is there then. One that is
    /// about to join has all, and is waited for.
    pub fn drop_learner(&mut self) {
        if self.feeds_learner && self.joining.is_none() {
            self.stream = None;
        }
    }

    /// The server that this replica sends its log to at present.
    pub fn feeds(&self) -> Option<ServerId> {
        self.stream.as_ref().map(Stream::server)
    }

    pub fn park(&mut self, from: ServerId, epoch: Epoch, request: peer::SyncRequest) {
        self.parked = Some((from, epoch, request));
    }

    /// Answers the successor's request once this replica can: in the epoch of the request, its own log settled.
    pub fn answer_parked(
        &mut self,
        epoch: Epoch,
        is_settled: bool,
        local: &LocalLog,
        out: &mut Vec<ReplicaCommand>,
    ) {
        let may_answer = is_settled || planted::on(Bug::UnsettledAnswers);
        let is_early = |asked_in: Epoch| asked_in > epoch || (asked_in == epoch && !may_answer);
        let Some((from, asked_in, request)) = self.parked.take_if(|(_, asked_in, _)| !is_early(*asked_in))
        else {
            return;
        };
        if asked_in == epoch && self.successor == Some(from) {
            self.answer(from, request, local, out);
        }
    }

    fn answer(
        &mut self,
        from: ServerId,
        request: peer::SyncRequest,
        local: &LocalLog,
        out: &mut Vec<ReplicaCommand>,
    ) {
        let log = local.log();
        let (common_index, base) = match log.common_index(request.last_index, &request.history) {
            Some(index) => (index, None),
            None => (log.base().index, Some(log.base().encode())),
        };
        self.stream = Some(Stream::behind(from, common_index));
        let reply = peer::SyncReply {
            nonce: request.nonce,
            common_index,
            last_index: local.last_index(),
            commit_index: local.commit_index(),
            base,
        };
        out.push(ReplicaCommand::Send {
            to: from,
            message: peer::Message::SyncReply(reply),
        });
    }

    /// This replica's own log was replaced by one behind a base. The successor sees a gap, or that it is behind, and
    /// asks again.
    pub fn restart_behind(&mut self, base_index: Index) {
        if let Some(stream) = &mut self.stream {
            *stream = Stream::behind(stream.server(), base_index);
        }
    }

    /// A lost group's log begins again: all that was known of the successor's log is void.
    pub fn reset(&mut self) {
        *self = Self {
            parked: self.parked.take(),
            allowance: self.allowance,
            is_held: self.is_held,
            notices: self.notices.reset(),
            ..Self::default()
        };
    }

    /// The successor, how much was sent to it, and how much has arrived there as far as is known here. A replica of the
    /// chain has all that is committed.
    pub fn reach(&self, commit_index: Index) -> Option<(ServerId, Reach)> {
        let stream = self.stream.as_ref()?;
        let committed = if self.feeds_learner { 0 } else { commit_index };
        let reach = Reach {
            handed: stream.sent(),
            arrived: stream.arrived().max(committed),
        };
        Some((stream.server(), reach))
    }

    /// The last index that the successor needs from neither memory nor disk; unbounded when it must ask first: it then
    /// gets a base, if it needs one.
    pub fn freeable(&self, commit_index: Index) -> Index {
        self.reach(commit_index)
            .map_or(Index::MAX, |(_, reach)| reach.handed.min(reach.arrived))
    }

    /// While the way to the successor is full, which other groups use as well, no batches are sent.
    pub fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }
}

/// Streaming.
impl Downstream {
    /// Sends the batches that the successor lacks, as far as its window allows.
    #[inline]
    pub fn pump(&mut self, local: &LocalLog, notice: peer::ChainNotice, out: &mut Vec<ReplicaCommand>) {
        let is_paced = self.is_paced();
        let Some(stream) = self.stream.as_mut().filter(|_| !self.is_held) else {
            return;
        };
        let log = local.log();
        let last_index = local.last_index();
        while !stream.is_loading() && stream.next() <= last_index {
            let sent = log.weight(stream.sent());
            if !stream.has_window(sent, log) {
                return;
            }
            let allowance = self.allowance.left().filter(|_| is_paced);
            if allowance.is_some_and(|left| left <= 0) {
                return;
            }
            let stored = log
                .get(stream.next())
                .expect("a batch that the successor needs is not trimmed");
            let Some(payload) = stored.payload.clone() else {
                let bytes_max = allowance.map_or(CATCHUP_WINDOW_BYTES, i64::unsigned_abs);
                let to_index = log.load_end(stream.next(), LOAD_BATCHES_MAX, bytes_max);
                return stream.load(to_index, out);
            };
            stream.send(&stored.header, payload, &stored.trace, &notice, last_index, out);
            if is_paced {
                self.allowance.spend(log.weight(stream.sent()) - sent);
            }
        }
    }

    /// Payloads that were read back from disk.
    pub fn loaded(
        &mut self,
        batches: Vec<(Index, Bytes)>,
        local: &LocalLog,
        notice: peer::ChainNotice,
        out: &mut Vec<ReplicaCommand>,
    ) {
        let is_paced = self.is_paced();
        let Some(stream) = &mut self.stream else { return };
        let log = local.log();
        let before = log.weight(stream.sent());
        stream.end_loading();
        for (index, payload) in batches {
            let header = log.header(index).filter(|_| index == stream.next());
            let Some(header) = header else { continue };
            stream.send(header, payload, &None, &notice, local.last_index(), out);
        }
        if is_paced {
            self.allowance.spend(log.weight(stream.sent()) - before);
        }
    }

    /// Tells the successor all that no batch carried.
    #[inline]
    pub fn notify(&mut self, notice: peer::ChainNotice, out: &mut Vec<ReplicaCommand>) {
        let may_wait = self.notices.begin_flush();
        let Some(stream) = &mut self.stream else { return };
        if stream.knows(&notice) {
            return;
        }
        if may_wait && stream.lacks_only_commit(&notice) {
            return self.notices.set_pending();
        }
        stream.notify(notice, out);
    }

    /// From now on a commit waits for the next batch to carry it, or for [`Downstream::commit_notice_due`].
    pub fn hold_commit_notices(&mut self) {
        self.notices.hold();
    }

    pub fn commit_notice_due(&mut self) {
        self.notices.due();
    }

    /// The successor does not know the commit index, and no batch that could carry it is there.
    pub fn is_notice_pending(&self) -> bool {
        self.notices.is_pending()
    }
}

/// Catching up a learner.
impl Downstream {
    /// From now on a learner is sent no more than [`Downstream::allow`] allows, and as much as is appended meanwhile: so
    /// what it lacks shrinks at the rate of the allowance.
    pub fn pace(&mut self) {
        self.allowance.begin();
    }

    pub fn allow(&mut self, bytes: u64) {
        self.allowance.add(bytes);
    }

    /// Commitment waits for a learner about to join, so that one is not held back.
    fn is_paced(&self) -> bool {
        self.allowance.left().is_some() && self.feeds_learner && self.joining.is_none()
    }

    /// Bytes that a learner could be sent now, if they were allowed.
    pub fn wanted_bytes(&self, local: &LocalLog) -> u64 {
        let Some(stream) = self.stream.as_ref().filter(|s| !s.is_loading()) else {
            return 0;
        };
        let left = self.allowance.left().filter(|_| self.is_paced());
        let Some(debt) = left.filter(|left| *left <= 0).map(i64::unsigned_abs) else {
            return 0;
        };
        let log = local.log();
        let sent = log.weight(stream.sent());
        let window = (log.weight(stream.arrived()) + CATCHUP_WINDOW_BYTES).saturating_sub(sent);
        let lacks = log.weight(local.last_index()).saturating_sub(sent);
        match window.min(lacks) {
            0 => 0,
            bytes => debt + bytes,
        }
    }

    /// Takes note of how far the successor is. A learner that lacks nothing is about to join at the chain's end. `needed`:
    /// what it must have for that.
    pub fn progress(
        &mut self,
        from: ServerId,
        progress: peer::Progress,
        is_chain_end: bool,
        needed: Acknowledged,
        out: &mut Vec<ReplicaCommand>,
    ) {
        // One that was dropped, or whose link broke, speaks of a part that it was sent before. It asks again.
        let Some(stream) = self.stream.as_mut().filter(|s| s.server() == from) else {
            return;
        };
        stream.hear_arrived(progress.index);
        let is_learner = self.feeds_learner && self.successor == Some(from);
        if !(progress.is_caught_up && is_chain_end && is_learner) {
            return;
        }
        let joining = self.joining.get_or_insert_with(|| Joining::new(from, needed));
        let is_news = joining.hear(progress);
        if is_news {
            self.report_learner(out);
        }
    }

    /// The part that a learner about to join has: the ring waits for it too.
    #[inline]
    pub fn learner_has(&self) -> Acknowledged {
        self.joining
            .as_ref()
            .map_or(Acknowledged::UNBOUNDED, Joining::has)
    }

    /// Reports the learner that may join to the coordinator; again at each tick, since it may have missed it.
    pub fn report_learner(&self, out: &mut Vec<ReplicaCommand>) {
        let ready = self.joining.as_ref().filter(|j| j.may_join());
        if let Some(joining) = ready {
            out.push(ReplicaCommand::LearnerCaughtUp {
                learner: joining.learner(),
            });
        }
    }
}
