//! A replica's rules, one for one those of `quorate-chain`: each function names its counterpart there.

use crate::bounds::{Bounds, Bug};
use crate::config::{ChainConfig, Role};
use crate::history::Breach;
use crate::ids::{Entry, Epoch, Index, ServerId, Session, UNBOUNDED};
use crate::message::{MessageBody, ModelMessage};
use crate::server::{DiskWrite, Downstream, Joining, Parked, ServerState, Upstream};
use crate::state::{ModelState, Report};

/// One step of one replica.
pub struct ReplicaStep<'a> {
    pub bounds: &'a Bounds,
    pub state: &'a mut ModelState,
    pub me: ServerId,
}

impl ReplicaStep<'_> {
    /// `Replica::configure`
    pub fn adopt(&mut self, epoch: Epoch) {
        let me = self.me;
        let config = self.state.config(epoch).expect("issued").clone();
        let role = config.role_of(me);
        let is_head = matches!(role, Role::Sole | Role::Head);
        let successor = config.successor_of(me);
        let ring = self.ring_of(&config);
        let server = self.server_mut();
        server.epoch = epoch;
        server.ring = ring;
        server.acknowledged_to_head = None;
        server.downstream = match successor {
            Some(_) => Downstream::Awaiting,
            None => Downstream::Nobody,
        };
        server.joining = None;
        server.upstream = match is_head {
            true => Upstream::IsHead,
            false => Upstream::Unconfigured,
        };
        if !is_head {
            self.ask_predecessor();
        }
        self.answer_parked();
        self.flush();
    }

    /// `Replica::append` and `Replica::order`
    pub fn order(&mut self, session: Session) {
        let epoch = self.server().epoch;
        let line = self.config();
        let has_left = |id: &ServerId| {
            let other = self.state.server(*id);
            !other.up || other.epoch > epoch || other.epochs_from > epoch
        };
        let is_late = line.chain.iter().skip(1).any(has_left);
        if is_late {
            self.state.history.note_late(epoch, session);
        }
        let tried = &mut self.state.history.tried[usize::from(session)];
        *tried = epoch.max(*tried);
        self.store(Entry { epoch, session });
        self.flush();
    }

    /// `Replica::step` for a message, or for a link that is back.
    pub fn receive(&mut self, from: ServerId, message: ModelMessage) {
        let ModelMessage { epoch, body } = message;
        match body {
            MessageBody::LinkUp => self.link_up(from),
            MessageBody::SyncRequest { history } => {
                if epoch >= self.server().epoch {
                    self.server_mut().parked = Some(Parked { from, epoch, history });
                    self.answer_parked();
                }
            }
            _ if self.server().epoch == 0 => {}
            _ if epoch != self.server().epoch && !self.bounds.has(Bug::EpochUnchecked) => {}
            MessageBody::Replicate {
                index,
                entry,
                commit,
                last,
            } => self.replicate(from, index, entry, commit, last),
            MessageBody::CommitNotice { commit } => self.chain_notice(from, commit),
            MessageBody::SyncReply { common, last, commit } => self.sync_reply(from, common, last, commit),
            MessageBody::LearnerAck { index } => self.progress(from, index),
            MessageBody::ChainAck { index } => {
                let ring = &mut self.server_mut().ring;
                if let Some((_, acknowledged)) = ring.iter_mut().find(|(member, _)| *member == from) {
                    *acknowledged = Some(acknowledged.map_or(index, |before| before.max(index)));
                }
            }
        }
        self.flush();
    }

    /// `LocalLog::persisted` and `LocalLog::truncation_persisted`: the oldest write is on disk.
    pub fn sync(&mut self) {
        let server = self.server_mut();
        match server.unsynced.remove(0) {
            DiskWrite::Batch(index, entry) => {
                server.disk.truncate(usize::from(index) - 1);
                server.disk.push(entry);
                let held = server.log.get(usize::from(index) - 1);
                let counts = held.is_some_and(|held| held.epoch == entry.epoch);
                if counts && !server.has_pending_truncation() {
                    server.durable = server.durable.max(index);
                }
            }
            DiskWrite::Truncation(index) => {
                server.disk.truncate(usize::from(index));
                if !server.has_pending_truncation() {
                    server.durable = server.durable.max(index);
                    self.answer_parked();
                }
            }
        }
        self.flush();
    }

    /// `Replica::link_up` and `Downstream::link_down`
    fn link_up(&mut self, other: ServerId) {
        if self.server().epoch == 0 || self.bounds.has(Bug::NoAgreementAfterBreak) {
            return;
        }
        let config = self.config().clone();
        let server = self.server_mut();
        if matches!(server.downstream, Downstream::Streaming { .. })
            && config.successor_of(self.me) == Some(other)
        {
            self.server_mut().downstream = Downstream::Awaiting;
        }
        if config.chain.first() == Some(&other) {
            self.server_mut().acknowledged_to_head = None;
        }
        if config.predecessor_of(self.me) == Some(other) {
            self.ask_predecessor();
        }
    }

    /// `Replica::ask_predecessor`
    pub fn ask_predecessor(&mut self) {
        let to = self.config().predecessor_of(self.me);
        let server = self.server_mut();
        server.upstream = Upstream::Asking;
        let history = server.log.iter().map(|entry| entry.epoch).collect();
        self.send(to, MessageBody::SyncRequest { history });
    }

    /// `Replica::answer_parked`
    fn answer_parked(&mut self) {
        let Some(parked) = self.server_mut().parked.take() else {
            return;
        };
        let own = self.server().epoch;
        let must_settle = !self.bounds.has(Bug::UnsettledAnswers);
        if parked.epoch > own || (parked.epoch == own && must_settle && !self.is_settled()) {
            self.server_mut().parked = Some(parked);
            return;
        }
        if parked.epoch < own || self.config().successor_of(self.me) != Some(parked.from) {
            return;
        }
        let common = common_index(&self.server().log, &parked.history);
        let server = self.server_mut();
        server.downstream = Downstream::Streaming {
            next: common + 1,
            sent_commit: None,
        };
        let (last, commit) = (server.last(), server.commit);
        let reply = MessageBody::SyncReply { common, last, commit };
        self.send(Some(parked.from), reply);
    }

    /// `Replica::sync_reply` (a log that begins behind a base is left out)
    fn sync_reply(&mut self, from: ServerId, common: Index, last: Index, commit: Index) {
        let is_asked = self.server().upstream == Upstream::Asking;
        if !is_asked || self.config().predecessor_of(self.me) != Some(from) {
            return;
        }
        self.truncate_to(common);
        let server = self.server_mut();
        server.upstream = Upstream::Following {
            confirmed: None,
            predecessor_last: last,
        };
        self.advance_commit(commit);
        self.answer_parked();
    }

    /// `LocalLog::truncate_to`
    fn truncate_to(&mut self, index: Index) {
        if index >= self.server().last() || self.bounds.has(Bug::SuffixKept) {
            return;
        }
        if index < self.server().commit {
            self.state.history.note_breach(Breach::CommittedTruncated);
        }
        let is_written = self.bounds.is_persistent() && !self.bounds.has(Bug::TruncationNotWritten);
        let is_rebuilt = !self.bounds.has(Bug::TableNotRebuilt);
        let server = self.server_mut();
        server.log.truncate(usize::from(index));
        server.commit = server.commit.min(index);
        server.durable = server.durable.min(index);
        if is_rebuilt {
            server.rebuild_table();
        }
        if is_written {
            server.unsynced.push(DiskWrite::Truncation(index));
        }
    }

    /// `Replica::replicate`
    fn replicate(&mut self, from: ServerId, index: Index, entry: Entry, commit: Index, last: Index) {
        if !self.hear(from, last) {
            return;
        }
        let held = self.server().log.get(usize::from(index) - 1).copied();
        match held {
            Some(held) if held != entry => self.state.history.note_breach(Breach::TwoBatchesAtOneIndex),
            Some(_) => {}
            None if index == self.server().last() + 1 => self.store(entry),
            None => return self.ask_predecessor(),
        }
        self.advance_commit(commit);
    }

    /// `Replica::chain_notice`
    fn chain_notice(&mut self, from: ServerId, commit: Index) {
        if self.hear(from, commit) {
            self.advance_commit(commit);
        }
    }

    /// Whether `from` is the predecessor that this replica follows; if so, notes its last index.
    fn hear(&mut self, from: ServerId, last: Index) -> bool {
        let is_predecessor = self.config().predecessor_of(self.me) == Some(from);
        match &mut self.server_mut().upstream {
            Upstream::Following { predecessor_last, .. } if is_predecessor => {
                *predecessor_last = last.max(*predecessor_last);
                true
            }
            _ => false,
        }
    }

    /// `Replica::store`
    fn store(&mut self, entry: Entry) {
        let waits_for_disk = self.bounds.is_persistent();
        let counts_at_once = !waits_for_disk || self.bounds.has(Bug::DurableBeforeSync);
        let server = self.server_mut();
        server.log.push(entry);
        let last = server.last();
        server.table[usize::from(entry.session)] = last;
        if waits_for_disk {
            server.unsynced.push(DiskWrite::Batch(last, entry));
        }
        if counts_at_once {
            server.durable = last;
        }
    }

    /// `Downstream::progress`, for a learner that lacks nothing. Windows are left out.
    fn progress(&mut self, from: ServerId, index: Index) {
        let config = self.config();
        let is_chain_end = matches!(self.role(), Role::Tail | Role::Sole);
        if !is_chain_end || config.learner != Some(from) {
            return;
        }
        let needed = self.server().durable;
        let fresh = Joining {
            learner: from,
            confirmed: 0,
            needed,
        };
        let joining = self.server_mut().joining.get_or_insert(fresh);
        joining.confirmed = joining.confirmed.max(index);
    }

    /// `Replica::flush`
    fn flush(&mut self) {
        if self.server().epoch == 0 {
            return;
        }
        self.commit_from_ring();
        self.pump();
        self.notice();
        self.show_progress();
        self.acknowledge_to_head();
        self.report_learner();
    }

    /// `Lead::commit`
    fn commit_from_ring(&mut self) {
        let has_quorum =
            self.config().chain.len() >= self.bounds.min_replicas || self.bounds.has(Bug::MinReplicasIgnored);
        let server = self.server();
        if !server.is_head() || !has_quorum {
            return;
        }
        let index = match self.bounds.has(Bug::CommitBeforeTail) {
            true => server.durable,
            false => self.ring_index(),
        };
        self.advance_commit(index);
    }

    /// `LocalLog::advance_commit`
    fn advance_commit(&mut self, to: Index) {
        let server = self.server_mut();
        let to = to.min(server.last());
        if to <= server.commit {
            return;
        }
        server.commit = to;
        let ModelState {
            servers,
            history,
            coordinator,
            ..
        } = &mut *self.state;
        let server = &servers[usize::from(self.me)];
        let config = &coordinator.configs[usize::from(server.epoch) - 1];
        history.note_commit(self.me, server, config, self.bounds);
    }

    /// `Downstream::pump`, without a window
    fn pump(&mut self) {
        let to = self.config().successor_of(self.me);
        loop {
            let server = self.server_mut();
            let (last, commit) = (server.last(), server.commit);
            let Downstream::Streaming { next, sent_commit } = &mut server.downstream else {
                return;
            };
            let index = *next;
            if index > last {
                return;
            }
            *next += 1;
            *sent_commit = Some(commit);
            let entry = server.log[usize::from(index) - 1];
            let batch = MessageBody::Replicate {
                index,
                entry,
                commit,
                last,
            };
            self.send(to, batch);
        }
    }

    /// `Downstream::notify`
    fn notice(&mut self) {
        let to = self.config().successor_of(self.me);
        let server = self.server_mut();
        let commit = server.commit;
        let Downstream::Streaming { sent_commit, .. } = &mut server.downstream else {
            return;
        };
        if *sent_commit != Some(commit) {
            *sent_commit = Some(commit);
            self.send(to, MessageBody::CommitNotice { commit });
        }
    }

    /// `Upstream::report_progress`: without windows, only a learner's acknowledgement that it lacks nothing matters.
    fn show_progress(&mut self) {
        let server = self.server();
        let Upstream::Following {
            confirmed,
            predecessor_last,
        } = server.upstream
        else {
            return;
        };
        let acknowledged = server.durable;
        let is_due = match confirmed {
            None => self.is_settled() && server.last() >= predecessor_last,
            Some(confirmed) => acknowledged > confirmed,
        };
        if self.role() != Role::Learner || !is_due {
            return;
        }
        let to = self.config().predecessor_of(self.me);
        self.server_mut().upstream = Upstream::Following {
            confirmed: Some(acknowledged),
            predecessor_last,
        };
        self.send(to, MessageBody::LearnerAck { index: acknowledged });
    }

    /// `Replica::acknowledge_to_head`
    fn acknowledge_to_head(&mut self) {
        if !self.acknowledges(self.role()) || !self.is_settled() {
            return;
        }
        let server = self.server();
        let acknowledged = server
            .acknowledged_to_head
            .unwrap_or(0)
            .max(self.acknowledged_index());
        if server.acknowledged_to_head == Some(acknowledged) {
            return;
        }
        let head = self.config().chain.first().copied();
        self.server_mut().acknowledged_to_head = Some(acknowledged);
        self.send(head, MessageBody::ChainAck { index: acknowledged });
    }

    /// `ring::acknowledges`
    fn acknowledges(&self, role: Role) -> bool {
        role == Role::Tail || (role == Role::Follower && self.bounds.is_persistent())
    }

    /// `Ring::of`
    fn ring_of(&self, config: &ChainConfig) -> Vec<(ServerId, Option<Index>)> {
        let must_acknowledge = |id: &ServerId| {
            let is_ignored = config.role_of(*id) == Role::Follower && self.bounds.has(Bug::FollowersIgnored);
            self.acknowledges(config.role_of(*id)) && !is_ignored
        };
        if config.chain.first() != Some(&self.me) {
            return Vec::new();
        }
        let members = config.chain.iter().copied().filter(must_acknowledge);
        members.map(|id| (id, None)).collect()
    }

    /// `Lead::ring_index`
    fn ring_index(&self) -> Index {
        match self.role() == Role::Head && self.bounds.has(Bug::OwnDiskIgnored) {
            true => self.server().ring_index(),
            false => self.acknowledged_index().min(self.server().ring_index()),
        }
    }

    /// The acknowledged index of this replica: its durable index, and that of a learner about to join.
    fn acknowledged_index(&self) -> Index {
        let joining = self
            .server()
            .joining
            .filter(|_| !self.bounds.has(Bug::JoinNotWaitedFor));
        let joined = joining.map_or(UNBOUNDED, |j| j.confirmed);
        self.server().durable.min(joined)
    }

    /// `Downstream::report_learner`; the coordinator hears of it in a later step.
    fn report_learner(&mut self) {
        let Some(joining) = self.server().joining else {
            return;
        };
        let short = Index::from(self.bounds.has(Bug::CaughtUpOneShort));
        let epoch = self.server().epoch;
        let is_current = epoch == self.state.epoch() || self.bounds.has(Bug::StaleReportTaken);
        if joining.confirmed + short >= joining.needed && is_current {
            self.state.coordinator.report = Some(Report {
                epoch,
                from: self.me,
                learner: joining.learner,
            });
        }
    }

    fn is_settled(&self) -> bool {
        let server = self.server();
        match self.bounds.has(Bug::TruncationNotWaitedFor) {
            true => matches!(server.upstream, Upstream::IsHead | Upstream::Following { .. }),
            false => server.is_settled(),
        }
    }

    fn send(&mut self, to: Option<ServerId>, body: MessageBody) {
        let epoch = self.server().epoch;
        if let Some(to) = to {
            self.state.send(self.me, to, epoch, body);
        }
    }

    fn server(&self) -> &ServerState {
        self.state.server(self.me)
    }

    fn server_mut(&mut self) -> &mut ServerState {
        &mut self.state.servers[usize::from(self.me)]
    }

    fn role(&self) -> Role {
        self.state.role(self.me)
    }

    fn config(&self) -> &ChainConfig {
        let epoch = self.server().epoch;
        self.state
            .config(epoch)
            .expect("only a configured replica takes part")
    }
}

/// `Log::common_index`: two logs that hold a batch of one epoch at one index agree up to it.
pub fn common_index(log: &[Entry], history: &[Epoch]) -> Index {
    let agrees = |at: &usize| log[*at].epoch == history[*at];
    let shared = 0..log.len().min(history.len());
    shared.rev().find(agrees).map_or(0, |at| at as Index + 1)
}
