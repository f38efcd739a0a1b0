//! One replica of one group: composes the parts of the protocol and dispatches events to them.

mod observe;

use bytes::Bytes;
use quorate_types::planted::{self, Bug};
use quorate_types::space::Terms;
use quorate_types::{Code, Durability, Epoch, GroupConfig, Index, Micros, Role, ServerId};
use quorate_wire::{Batch, BatchHeader, peer};

use crate::acknowledged::Acknowledged;
use crate::command::{AppendRequest, Asked, ClientRef, Happened, Question, ReplicaCommand, ReplicaEvent};
use crate::downstream::Downstream;
use crate::head::{self, Headship, IsolationWatch, Judgement, Lead};
use crate::lag::Lag;
use crate::local_log::LocalLog;
use crate::log::{Base, Log, Placed};
use crate::membership::Membership;
use crate::recovery::{RecoverError, Recovery};
use crate::trim::Trim;
use crate::upstream::{Agreed, Fits, HeadAcks, Upstream};

#[derive(Debug)]
pub struct Replica {
    membership: Membership,
    local: LocalLog,
    recovery: Recovery,
    trim: Trim,
    upstream: Upstream,
    head_acks: HeadAcks,
    downstream: Downstream,
    headship: Headship,
    /// The last ring pass of this epoch: begun here at the head, else heard of.
    ring_pass: u64,
    isolation: IsolationWatch,
    lag: Lag,
}

impl Replica {
    /// A replica that holds nothing yet.
    pub fn new(me: ServerId, durability: Durability) -> Self {
        Self::recovered(me, durability, Base::default())
    }

    /// A replica whose log begins behind `base`; [`Replica::recover`] and its like add what the journal has. It
    /// has no role before it is configured, whatever its last epoch was: only the coordinator knows the present one.
    pub fn recovered(me: ServerId, durability: Durability, base: Base) -> Self {
        let mut trim = Trim::default();
        trim.recover(base.index);
        Self {
            membership: Membership::new(me),
            local: LocalLog::new(durability, base),
            recovery: Recovery::default(),
            trim,
            upstream: Upstream::new(),
            head_acks: HeadAcks::default(),
            downstream: Downstream::default(),
            headship: Headship::default(),
            ring_pass: 0,
            isolation: IsolationWatch::default(),
            lag: Lag::default(),
        }
    }

    /// Bounds the committed payload that a persistent replica keeps in memory for readers. The rest is on disk.
    pub fn keep_recent(&mut self, bytes_max: u64) {
        self.local.keep_recent(bytes_max);
    }

    /// The server has no memory left for more than it promised, and this group holds more: what can be had again goes.
    /// Payloads are read from disk. A learner that holds up the trim begins again, behind what is retained.
    pub fn set_memory_short(&mut self, is_short: bool) {
        self.local.set_memory_short(is_short);
        if is_short && self.trim.index(&self.local) > self.downstream.freeable(self.local.commit_index()) {
            self.downstream.drop_learner();
        }
    }

    /// Takes in one event. Call [`Replica::flush`] after a run of them.
    pub fn step(&mut self, now: Micros, event: ReplicaEvent, out: &mut Vec<ReplicaCommand>) {
        match event {
            ReplicaEvent::Configure(config) => self.configure(now, *config, out),
            ReplicaEvent::Append(request) => self.append(request, out),
            ReplicaEvent::Ask {
                client,
                request,
                asked,
            } => {
                let question = Question {
                    client,
                    request,
                    asked,
                };
                self.ask(now, question, out);
            }
            ReplicaEvent::Peer { from, epoch, message } => self.peer(now, from, epoch, message, out),
            ReplicaEvent::Persisted { index, epoch } => self.local.persisted(index, epoch),
            ReplicaEvent::TruncationPersisted { number } => {
                if self.local.truncation_persisted(number) {
                    self.answer_parked(out);
                }
            }
            ReplicaEvent::DropPersisted => {
                self.local.drop_persisted();
                self.answer_parked(out);
            }
            ReplicaEvent::TrimPersisted { index } => self.trim.persisted(index),
            ReplicaEvent::Loaded { batches } => {
                let notice = self.notice();
                self.downstream.loaded(batches, &self.local, notice, out);
            }
            ReplicaEvent::LinkUp { .. } | ReplicaEvent::LinkDown { .. }
                if planted::on(Bug::NoNewAgreement) => {}
            ReplicaEvent::LinkUp { server } => self.link_up(now, server, out),
            ReplicaEvent::LinkDown { server } => self.downstream.link_down(server),
            ReplicaEvent::StorageFault(has_fault) => self.local.set_fault(has_fault),
            ReplicaEvent::CoordinatorSilent(is_silent) => self.isolation.set_coordinator_silent(is_silent),
            ReplicaEvent::Deposed { by } => self.be_deposed(by, out),
            ReplicaEvent::CatchupAllowance { bytes } => self.downstream.allow(bytes),
            ReplicaEvent::CommitNoticeDue => self.downstream.commit_notice_due(),
            ReplicaEvent::Tick { vouched_us } => self.tick(now, vouched_us, out),
        }
    }

    /// Ends a run of events: commits what it can, feeds the successor, acknowledges to the head.
    pub fn flush(&mut self, out: &mut Vec<ReplicaCommand>) {
        if let Some(config) = self.membership.config().filter(|_| self.is_head()) {
            self.trim.by_outgrowth(config, &self.local);
        }
        let trimmed = self.trim.index(&self.local);
        self.local.free_through(trimmed.min(self.freeable_index()), out);
        if self.is_head() {
            self.lead().flush(out);
        }
        self.trim.take_in(&self.local, out);
        if self.is_head() {
            self.lead().answer_trims(out);
        }
        let notice = self.notice();
        self.downstream.pump(&self.local, notice, out);
        self.downstream.notify(notice, out);
        let has = self.has();
        self.upstream
            .report_progress(&self.membership, &self.local, has, out);
        self.acknowledge_to_head(out);
        self.local.evict();
    }

    fn tick(&mut self, now: Micros, vouched_us: Option<u64>, out: &mut Vec<ReplicaCommand>) {
        self.downstream.commit_notice_due();
        if self
            .upstream
            .is_ask_due(now, self.role(), self.local.last_index())
        {
            self.ask_predecessor(now, out);
        }
        self.downstream.report_learner(out);
        self.upstream.show_progress(&self.membership, &self.local, out);
        if let Some(config) = self.membership.config() {
            self.trim.watch(now, vouched_us, config, &self.local);
            if self.is_head() {
                self.trim.by_retention(now, config, &self.local);
            }
        }
        self.headship.expire_questions(now, out);
        let successor = self.downstream.reach(self.local.commit_index());
        self.lag.mark(now, self.journal_reach(), successor);
        self.judge_isolation(now, out);
    }
}

/// Configurations.
impl Replica {
    fn configure(&mut self, now: Micros, config: GroupConfig, out: &mut Vec<ReplicaCommand>) {
        assert!(
            !self.recovery.is_open(),
            "the log of {} was not recovered to its end",
            config.group_id
        );
        let epoch = config.epoch;
        if epoch < self.epoch() {
            return;
        }
        if epoch == self.epoch() {
            out.push(ReplicaCommand::Adopted { epoch });
            return;
        }
        self.local.keep_to(&Terms::of_config(&config));
        self.reset_for(&config, out);
        self.headship
            .begin_epoch(&config, self.durability(), self.local.last_index());
        self.membership.adopt(config);
        if !self.is_head() {
            self.abandon_clients(Code::NotHead, out);
        }
        self.ring_pass = 0;
        self.isolation.begin_epoch();
        self.head_acks.begin();
        self.trim.begin_epoch();
        let successor = self.membership.successor();
        let is_learner = successor.is_some_and(|id| self.membership.role_of(id) == Role::Learner);
        self.downstream.begin_epoch(successor, is_learner);
        self.upstream.begin_epoch(self.is_head());
        let role = self.role();
        if matches!(role, Role::Follower | Role::Tail | Role::Learner) {
            self.ask_predecessor(now, out);
        }
        if role.is_whole() {
            self.local.persist_empty(out);
        }
        out.push(ReplicaCommand::Adopted { epoch });
        self.answer_parked(out);
    }

    /// A lost group's log begins again where its owner's reset says: what this replica holds is no part of the new log.
    /// Every replica comes to the same base by itself.
    fn reset_for(&mut self, config: &GroupConfig, out: &mut Vec<ReplicaCommand>) {
        let Some(beginning) = config.beginning else { return };
        if self.local.log().last_epoch() >= beginning.epoch {
            return;
        }
        self.abandon_clients(Code::EpochChanged, out);
        self.trim.reset();
        self.isolation = IsolationWatch::default();
        self.lag = Lag::default();
        self.downstream.reset();
        self.local.reset(Base::of_beginning(&beginning), out);
        out.push(ReplicaCommand::Trimmed {
            first_index: self.local.log().first_index(),
        });
    }

    fn link_up(&mut self, now: Micros, server: ServerId, out: &mut Vec<ReplicaCommand>) {
        if self.membership.head() == Some(server) {
            self.head_acks.begin();
        }
        if self.membership.predecessor() == Some(server) {
            self.ask_predecessor(now, out);
        }
    }
}

/// Messages of other replicas.
impl Replica {
    fn peer(
        &mut self,
        now: Micros,
        from: ServerId,
        epoch: Epoch,
        message: peer::Message,
        out: &mut Vec<ReplicaCommand>,
    ) {
        if let peer::Message::SyncRequest(request) = message {
            if epoch >= self.epoch() {
                self.downstream.park(from, epoch, request);
                self.answer_parked(out);
            }
            return;
        }
        // An older epoch is fenced. A newer one is not known here yet, and its sender will repeat the message.
        if epoch != self.epoch() && !planted::on(Bug::EpochUnchecked) {
            return;
        }
        match message {
            peer::Message::Replicate(m) => self.replicate(now, from, m, out),
            peer::Message::ChainNotice(m) => self.chain_notice(now, from, m),
            peer::Message::SyncReply(reply) => self.sync_reply(now, from, &reply, out),
            peer::Message::ChainAck(ack) => self.chain_ack(from, ack),
            peer::Message::Progress(m) => {
                let is_chain_end = self.membership.is_chain_end();
                // A disk that lost what it had called durable has less than its part in what was committed.
                let mut needed = self.has();
                needed.index = needed.index.max(self.upstream.predecessor_has());
                needed.trim_index = needed.trim_index.max(self.trim.told());
                self.downstream.progress(from, m, is_chain_end, needed, out);
            }
            // Repairs of records on disk, which `quorate-group` handles.
            peer::Message::Fetch { .. } | peer::Message::Fetched { .. } => {}
            peer::Message::SyncRequest(_) => unreachable!("handled above"),
        }
    }

    #[inline]
    fn replicate(
        &mut self,
        now: Micros,
        from: ServerId,
        message: peer::Replicate,
        out: &mut Vec<ReplicaCommand>,
    ) {
        let predecessor = self.membership.predecessor();
        let log = self.local.log();
        match self.upstream.hear_batch(now, from, predecessor, &message, log) {
            Fits::Ignored => return,
            Fits::Gap => return self.ask_predecessor(now, out),
            Fits::Held => {}
            Fits::Next => self.store(message.batch, out),
        }
        self.upstream.hear_fault(message.storage_fault);
        self.local.advance_commit(message.commit_index);
    }

    fn chain_notice(&mut self, now: Micros, from: ServerId, notice: peer::ChainNotice) {
        let predecessor = self.membership.predecessor();
        if !self.upstream.hear_notice(now, from, predecessor, &notice) {
            return;
        }
        self.ring_pass = self.ring_pass.max(notice.ring_pass);
        self.trim.hear(&notice);
        self.local.advance_commit(notice.commit_index);
    }

    fn ask_predecessor(&mut self, now: Micros, out: &mut Vec<ReplicaCommand>) {
        let predecessor = self.membership.predecessor();
        self.upstream.ask(now, predecessor, &self.local, out);
    }

    fn sync_reply(
        &mut self,
        now: Micros,
        from: ServerId,
        reply: &peer::SyncReply,
        out: &mut Vec<ReplicaCommand>,
    ) {
        let predecessor = self.membership.predecessor();
        let Some(agreed) = self.upstream.judge_reply(from, predecessor, reply) else {
            return;
        };
        match agreed {
            Agreed::Behind(base) => self.start_from(base, out),
            Agreed::UpTo(_) if planted::on(Bug::SuffixKept) => {}
            Agreed::UpTo(index) => self.local.truncate_to(index, out),
        }
        self.upstream
            .follow(now, reply.last_index, self.role(), &self.local);
        self.local.advance_commit(reply.commit_index);
        self.answer_parked(out);
    }

    fn start_from(&mut self, base: Base, out: &mut Vec<ReplicaCommand>) {
        let index = base.index;
        assert!(
            index >= self.commit_index(),
            "a base at {index} below the commit index {}",
            self.commit_index()
        );
        self.local.replace(base, out);
        self.trim.submit_again_behind(index);
        self.downstream.restart_behind(index);
        out.push(ReplicaCommand::Trimmed {
            first_index: index + 1,
        });
    }

    fn answer_parked(&mut self, out: &mut Vec<ReplicaCommand>) {
        let is_settled = self.is_settled();
        self.downstream
            .answer_parked(self.epoch(), is_settled, &self.local, out);
    }

    /// Inlined, so that a batch is moved once on its way into the log.
    #[inline(always)]
    fn store(&mut self, batch: Batch, out: &mut Vec<ReplicaCommand>) {
        // Appends while a learner catches up do not come out of its allowance.
        self.downstream.allow(Log::weight_of(&batch.header));
        self.local.store(batch, out);
    }

    fn acknowledge_to_head(&mut self, out: &mut Vec<ReplicaCommand>) {
        if !head::acknowledges(self.role(), self.durability()) || !self.is_settled() {
            return;
        }
        let mut has = self.has().common(self.downstream.learner_has());
        if self.durability() == Durability::InMemory {
            // The tail alone acknowledges, for all before it.
            has.trim_index = has.trim_index.min(self.trim.chained_index());
        }
        self.head_acks
            .send(self.membership.head(), has, self.has_fault(), out);
    }

    /// The notice that the successor should know now.
    fn notice(&self) -> peer::ChainNotice {
        peer::ChainNotice {
            commit_index: self.commit_index(),
            storage_fault: self.has_fault(),
            trim_index: self.trim.target(),
            trim_asked: self.trim.passed_on(self.role()),
            ring_pass: self.ring_pass,
        }
    }

    /// The part that this replica has by itself.
    fn has(&self) -> Acknowledged {
        Acknowledged {
            index: self.local.durable_index(),
            trim_index: self.trim.durable_index(),
            pass: self.ring_pass,
        }
    }

    /// Whether the log agrees with the head's up to its end, for good.
    fn is_settled(&self) -> bool {
        self.upstream.is_settled() && self.local.is_settled()
    }

    /// Whether this replica, or one before it, cannot write to its disk.
    fn has_fault(&self) -> bool {
        self.local.has_fault() || self.upstream.has_fault()
    }
}

/// The head's part.
impl Replica {
    #[inline]
    fn append(&mut self, request: AppendRequest, out: &mut Vec<ReplicaCommand>) {
        let (is_isolated, has_fault) = (self.isolation.is_isolated(), self.has_fault());
        let judgement = self.headship.judge(
            &request,
            &self.membership,
            self.local.log(),
            is_isolated,
            has_fault,
        );
        match judgement {
            Judgement::Order => self.order(request, out),
            Judgement::Retry(placed) => {
                self.headship
                    .answer_retry(&request, placed, self.local.commit_index(), out);
            }
            Judgement::Refuse(code, premise) => {
                self.headship
                    .refuse(&request, code, premise, self.ring_pass + 1, out);
            }
            Judgement::Forgotten => out.push(ReplicaCommand::Refuse {
                client: request.client,
                seq: request.seq,
                entry_count: request.entry_count,
                code: Code::SessionExpired,
                happened: Happened::Unknown,
                retry_after_ms: 0,
            }),
        }
    }

    #[inline]
    fn order(&mut self, request: AppendRequest, out: &mut Vec<ReplicaCommand>) {
        let (client, seq, arrival) = (request.client, request.seq, request.arrival);
        let batch = head::order(request, &self.membership, self.local.log());
        let placed = Placed::of(&batch.header);
        self.store(batch, out);
        self.headship.wait(client, seq, placed, arrival);
    }

    fn ask(&mut self, now: Micros, question: Question, out: &mut Vec<ReplicaCommand>) {
        let refused = match question.asked {
            _ if self.is_head() => return self.lead().ask(now, question, out),
            // Another replica answers with what it knows.
            Asked::Status => None,
            Asked::Trim { .. } if self.role() == Role::None => Some(Code::GroupNotHere),
            Asked::Trim { .. } => Some(Code::NotHead),
        };
        out.push(question.answer(refused));
    }

    fn lead(&mut self) -> Lead<'_> {
        Lead {
            membership: &self.membership,
            local: &mut self.local,
            trim: &mut self.trim,
            headship: &mut self.headship,
            ring_pass: &mut self.ring_pass,
            learner_has: self.downstream.learner_has(),
        }
    }

    fn chain_ack(&mut self, from: ServerId, ack: peer::ChainAck) {
        if self.role() != Role::Head {
            return;
        }
        assert!(
            ack.ring_pass <= self.ring_pass,
            "ring pass {} comes back, {} was begun",
            ack.ring_pass,
            self.ring_pass
        );
        self.headship.hear(from, ack);
    }

    fn judge_isolation(&mut self, now: Micros, out: &mut Vec<ReplicaCommand>) {
        let progress = self.lead().progress();
        let is_behind =
            progress.acknowledged_index < self.local.last_index() || progress.pass < self.ring_pass;
        // An append that came now would not get beyond this head.
        let is_parted = self.downstream.feeds().is_none();
        let is_under_way = !progress.is_agreed || is_behind || is_parted || self.trim.is_waited_for();
        self.isolation
            .judge(now, progress, self.role() == Role::Head && is_under_way);
        self.turn_away(out);
    }

    fn be_deposed(&mut self, by: Epoch, out: &mut Vec<ReplicaCommand>) {
        if self.is_head() && by > self.epoch() {
            self.isolation.depose();
            self.turn_away(out);
        }
    }

    /// An isolated head sends its clients elsewhere.
    fn turn_away(&mut self, out: &mut Vec<ReplicaCommand>) {
        if self.isolation.is_isolated() {
            self.headship.abandon_uncertain(Code::CutOff, out);
            self.trim.abandon(Code::CutOff, out);
            self.headship.refuse_waiters(Code::CutOff, out);
        }
    }

    /// No longer the head, or not in this log: the outcome of what clients wait for is not known here.
    fn abandon_clients(&mut self, code: Code, out: &mut Vec<ReplicaCommand>) {
        self.headship.abandon_uncertain(code, out);
        self.trim.abandon(Code::EpochChanged, out);
        self.headship.refuse_waiters(Code::EpochChanged, out);
    }
}

/// Decisions of the shell.
impl Replica {
    /// To be called before the first event, if the journal does not yet have the note that an earlier replica of the
    /// group was dropped here. A restart would bring that one back. The replica learns, but is not settled, before
    /// [`ReplicaEvent::DropPersisted`].
    pub fn wait_for_drop(&mut self) {
        self.local.wait_for_drop();
    }

    /// The group leaves this server: its clients learn that the outcome of their appends is not known here.
    pub fn leave(&mut self, out: &mut Vec<ReplicaCommand>) {
        self.abandon_clients(Code::GroupNotHere, out);
    }

    /// The client's channel is gone: nothing is kept for answering it.
    pub fn forget_client(&mut self, client: ClientRef) {
        self.headship.forget_client(client);
        self.trim.forget_client(client);
    }

    /// From now on a learner is sent no more than [`ReplicaEvent::CatchupAllowance`] allows, and as much as is appended
    /// meanwhile: so what it lacks shrinks at the rate of the allowance. Commitment waits for a learner about to join,
    /// so that one is not held back.
    pub fn pace_catchup(&mut self) {
        self.downstream.pace();
    }

    /// While the way to the successor is full, which other groups use as well, [`Replica::flush`] sends it no batches.
    /// To be called again, and flushed, when there is room.
    pub fn hold(&mut self, is_held: bool) {
        self.downstream.hold(is_held);
    }

    /// From now on the successor hears of a commitment by the next batch, or after [`ReplicaEvent::CommitNoticeDue`], which
    /// [`Replica::is_commit_notice_pending`] asks for. Only readers there wait for it. All else is sent at once.
    pub fn hold_commit_notices(&mut self) {
        self.downstream.hold_commit_notices();
    }
}

/// Records of the journal, in the order in which they were written.
impl Replica {
    /// Takes in the next batch, on stable storage by that. A batch at an index that is held already was ordered later,
    /// after a truncation there.
    pub fn recover(&mut self, batch: Batch) {
        self.recovery.batch(&mut self.local, batch);
    }

    /// As [`Replica::recover`], of a batch whose payload stays where it was found.
    pub fn recover_on_disk(&mut self, header: BatchHeader) {
        self.recover(Batch {
            header,
            payload: Bytes::new(),
            trace: None,
        });
        self.local.evict_recovered();
    }

    /// Takes in a base: either the batches up to it were trimmed, or the log began again behind it.
    pub fn recover_base(&mut self, base: Base) {
        self.recovery.base(&mut self.local, base);
    }

    /// Takes in a truncation. One to 0 ends all logs before it.
    pub fn recover_truncation(&mut self, index: Index) {
        self.recovery.truncation(&mut self.local, &mut self.trim, index);
    }

    /// Takes in a trim: clients asked for it, and were answered.
    pub fn recover_trim(&mut self, index: Index) {
        self.trim.recover(index);
    }

    /// The log begins behind a gap, and no base has told yet that the part before was trimmed.
    pub fn lacks_beginning(&self) -> bool {
        self.recovery.is_open()
    }

    /// Ends recovery; to be called behind the last record. An error means that the journal lacks a part of the log: the
    /// replica is of no use.
    pub fn recovered_all(&mut self) -> Result<(), RecoverError> {
        self.recovery.end(&mut self.local, &mut self.trim)
    }
}
