//! One replica of one group: its state, and the dispatch of events.
//!
//! The parts of the protocol live beside it: [`crate::head`] orders appends and commits,
//! [`crate::rounds`] confirms that the head is the head, [`crate::trim`] discards, [`crate::upstream`] follows the
//! predecessor, [`crate::downstream`] feeds the successor, [`crate::read`] serves readers.

use std::collections::VecDeque;

use bytes::Bytes;
use quorate_types::limits::RECENT_BYTES_PER_GROUP;
use quorate_types::planted::{self, Bug};
use quorate_types::{
    Code, Durability, Epoch, GroupConfig, GroupState, Index, Micros, Offset, Role, ServerId,
};
use quorate_wire::{Batch, peer};

use crate::base::Base;
use crate::command::{Command, Event, Happened};
use crate::cut_off::CutOff;
use crate::downstream::{Downstream, Joining};
use crate::head::Waiter;
use crate::lag::Lag;
use crate::log::Log;
use crate::recover::Recovery;
use crate::ring::Ring;
use crate::rounds::Rounds;
use crate::trim::Trim;
use crate::upstream::Upstream;

#[derive(Debug)]
pub struct Replica {
    pub(crate) me: ServerId,
    pub(crate) durability: Durability,
    pub(crate) config: Option<GroupConfig>,
    pub(crate) role: Role,
    /// In the chain of `config`, which lists its members elsewhere in memory: it is asked for with each batch.
    pub(crate) predecessor: Option<ServerId>,
    pub(crate) log: Log,
    pub(crate) commit_index: Index,
    /// On stable storage here; follows the log in an in-memory group.
    pub(crate) durable_index: Index,
    pub(crate) upstream: Upstream,
    pub(crate) downstream: Downstream,
    /// At the tail (or alone): the learner about to join in this epoch.
    pub(crate) joining: Option<Joining>,
    pub(crate) fault_here: bool,
    /// A replica before this one cannot write to its disk.
    pub(crate) fault_before: bool,
    /// At the head: what the others have said in this epoch.
    pub(crate) ring: Ring,
    /// At the head: what it held when the epoch began. All that was committed before is part of that.
    pub(crate) inherited_index: Index,
    /// What the head was last told in this epoch.
    pub(crate) told_head: Option<peer::ChainAck>,
    /// At the head: appends that wait for commitment, by index, one for each.
    pub(crate) waiters: VecDeque<Waiter>,
    pub(crate) nonce: u32,
    /// Cuts of this log so far.
    cuts: u64,
    /// The last cut, until the journal has it: number and index.
    pending_cut: Option<(u64, Index)>,
    /// The journal does not yet have the note that an earlier replica of the group was dropped here.
    pending_drop: bool,
    /// While the journal is read.
    pub(crate) recovery: Recovery,
    pub(crate) trim: Trim,
    pub(crate) rounds: Rounds,
    pub(crate) lag: Lag,
    pub(crate) cut_off: CutOff,
    /// The successor is a learner.
    pub(crate) feeds_learner: bool,
    /// Bytes that a learner may still be sent, negative when one batch overdrew it; `None`: as many as its window
    /// takes.
    pub(crate) catchup_allowance: Option<i64>,
    /// Nothing more is sent down for now: see [`Replica::hold`].
    pub(crate) is_held: bool,
    /// What is committed waits for the next batch to carry it, and is told by itself only when that is due.
    pub(crate) holds_notices: bool,
    pub(crate) is_notice_due: bool,
    pub(crate) owes_notice: bool,
    /// A request that came before this replica could answer it.
    pub(crate) parked: Option<(ServerId, Epoch, peer::SyncRequest)>,
}

impl Replica {
    /// A replica that holds nothing yet.
    pub fn new(me: ServerId, durability: Durability) -> Self {
        Self::recovered(me, durability, Base::default())
    }

    /// A replica whose log begins behind `base`; [`Replica::recover`] and its like add what the journal has. It
    /// has no role until it is configured, whatever its last epoch was: only the coordinator knows the present one.
    pub fn recovered(me: ServerId, durability: Durability, base: Base) -> Self {
        let mut trim = Trim::new();
        trim.recover(base.index);
        Self {
            me,
            durability,
            config: None,
            role: Role::None,
            predecessor: None,
            commit_index: base.index,
            durable_index: base.index,
            log: Log::new(base),
            upstream: Upstream::Unconfigured,
            downstream: Downstream::None,
            joining: None,
            fault_here: false,
            fault_before: false,
            ring: Ring::default(),
            inherited_index: 0,
            told_head: None,
            waiters: VecDeque::new(),
            nonce: 0,
            cuts: 0,
            pending_cut: None,
            pending_drop: false,
            recovery: Recovery::default(),
            trim,
            rounds: Rounds::default(),
            lag: Lag::default(),
            cut_off: CutOff::default(),
            feeds_learner: false,
            catchup_allowance: None,
            is_held: false,
            holds_notices: false,
            is_notice_due: false,
            owes_notice: false,
            parked: None,
        }
    }

    /// To be called before its first event where the journal does not yet have the note that an earlier replica of the
    /// group was dropped here: a restart would bring that back. The replica learns, but does not stand, before
    /// [`Event::DropPersisted`].
    pub fn stand_behind_drop(&mut self) {
        self.pending_drop = self.durability == Durability::Persistent;
    }

    /// Takes in one event. Call [`Replica::flush`] after a round of them.
    pub fn step(&mut self, now: Micros, event: Event, out: &mut Vec<Command>) {
        match event {
            Event::Configure(config) => self.configure(now, config, out),
            Event::Append(request) => self.append(request, out),
            Event::Ask {
                client,
                request,
                asked,
            } => self.ask(now, client, request, asked, out),
            Event::Peer { from, epoch, message } => self.peer(now, from, epoch, message, out),
            Event::Persisted { index, epoch } => self.persisted(index, epoch),
            Event::CutPersisted { number } => self.cut_persisted(number, out),
            Event::DropPersisted => self.drop_persisted(out),
            Event::TrimPersisted { index } => self.trim_persisted(index),
            Event::Loaded { batches } => self.loaded(batches, out),
            Event::LinkUp { server } => self.link_up(now, server, out),
            Event::LinkDown { .. } if planted::on(Bug::NoNewAgreement) => {}
            Event::LinkDown { server } => self.downstream.link_down(server),
            Event::StorageFault(fault) => {
                self.fault_here = fault && self.durability == Durability::Persistent
            }
            Event::CoordinatorSilent(silent) => self.cut_off.coordinator_silent = silent,
            Event::CatchupAllowance { bytes } => self.allow_catchup(bytes),
            Event::NoticeDue => self.is_notice_due = true,
            Event::Tick { wall_us } => self.tick(now, wall_us, out),
        }
    }

    /// Ends a round: commits what can be, feeds the successor, tells the head what this replica has.
    pub fn flush(&mut self, out: &mut Vec<Command>) {
        self.free_trimmed(out);
        self.commit_from_ring(out);
        self.begin_round();
        self.answer_rounds(out);
        self.take_in_trim(out);
        self.answer_trims(out);
        self.pump(out);
        self.tell_successor(out);
        self.tell_progress(out);
        self.tell_head(out);
        if self.durability == Durability::Persistent {
            self.log
                .evict(self.commit_index.min(self.durable_index), RECENT_BYTES_PER_GROUP);
        }
    }

    fn configure(&mut self, now: Micros, config: GroupConfig, out: &mut Vec<Command>) {
        assert!(
            !self.recovery.is_open(),
            "the log of {} was not recovered to its end",
            config.group_id
        );
        if config.epoch < self.epoch() {
            return;
        }
        if config.epoch == self.epoch() {
            out.push(Command::Adopted { epoch: config.epoch });
            return;
        }
        self.begin_anew(&config, out);
        let role = config.role_of(self.me);
        let successor = config.successor_of(self.me).map(|m| m.server_id);
        self.predecessor = config.predecessor_of(self.me).map(|m| m.server_id);
        let epoch = config.epoch;
        self.feeds_learner = successor.is_some_and(|id| config.role_of(id) == Role::Learner);
        self.ring = Ring::of(&config, self.durability);
        self.config = Some(config);
        self.role = role;
        if !self.is_head() {
            self.abandon_waiters(Code::NotHead, out);
        }
        self.rounds.begin_epoch();
        self.cut_off.begin_epoch();
        self.fault_before = false;
        self.inherited_index = self.log.last_index();
        self.told_head = None;
        self.downstream = Downstream::awaiting(successor);
        self.joining = None;
        self.upstream = Upstream::Unconfigured;
        match role {
            Role::None => {}
            Role::Head | Role::Sole => self.upstream = Upstream::IsHead,
            Role::Follower | Role::Tail | Role::Learner => self.ask_predecessor(now, out),
        }
        let counts = !matches!(role, Role::None | Role::Learner);
        if counts && self.durability == Durability::Persistent && self.log.last_index() == 0 {
            // A replica of the chain holds the group also while its log is empty: a restart must find it.
            self.persist_base(out);
        }
        out.push(Command::Adopted { epoch });
        self.answer_parked(out);
    }

    /// The group was lost, and its owner had it begin anew: what this replica holds from before is no part of the
    /// new log. Every replica comes to the same base by itself, so none has to be taught it. Here and on disk it is
    /// as if the group had been dropped, and came again.
    fn begin_anew(&mut self, config: &GroupConfig, out: &mut Vec<Command>) {
        let Some(beginning) = config.beginning else { return };
        if self.log.last_epoch() >= beginning.epoch {
            return;
        }
        self.abandon_waiters(Code::EpochChanged, out);
        // Trim point, levels, completions that are due: all of it was the lost log's.
        *self = Self {
            config: self.config.take(),
            fault_here: self.fault_here,
            nonce: self.nonce,
            cuts: self.cuts,
            catchup_allowance: self.catchup_allowance,
            is_held: self.is_held,
            holds_notices: self.holds_notices,
            parked: self.parked.take(),
            ..Self::new(self.me, self.durability)
        };
        if self.durability == Durability::Persistent {
            out.push(Command::Forget);
        }
        self.replace_log(Base::of_beginning(&beginning), out);
        out.push(Command::Trimmed {
            first_index: self.log.first_index(),
        });
        out.push(Command::Committed);
    }

    fn peer(
        &mut self,
        now: Micros,
        from: ServerId,
        epoch: Epoch,
        message: peer::Message,
        out: &mut Vec<Command>,
    ) {
        if let peer::Message::SyncRequest(request) = message {
            self.sync_request(from, epoch, request, out);
            return;
        }
        // An older epoch is fenced; a newer one is not known here yet, and its sender will say it again.
        if epoch != self.epoch() && !planted::on(Bug::EpochUnchecked) {
            return;
        }
        match message {
            peer::Message::Replicate(m) => self.replicate(now, from, m, out),
            peer::Message::ChainNotice(m) => self.chain_notice(now, from, m, out),
            peer::Message::SyncReply(reply) => self.sync_reply(now, from, reply, out),
            peer::Message::ChainAck(ack) => self.chain_ack(from, ack),
            peer::Message::Progress(m) => self.progress(from, m, out),
            // Between disks: the shell's.
            peer::Message::Fetch { .. } | peer::Message::Fetched { .. } => {}
            peer::Message::SyncRequest(_) => unreachable!("handled above"),
        }
    }

    fn chain_ack(&mut self, from: ServerId, ack: peer::ChainAck) {
        if self.role != Role::Head {
            return;
        }
        assert!(
            ack.round <= self.rounds.seen,
            "a round is begun before it is closed"
        );
        self.ring.hear(from, ack);
    }

    fn persisted(&mut self, index: Index, epoch: Epoch) {
        // The journal is in order: this was written before the cut, and may be what the cut removes.
        if self.pending_cut.is_some() && !planted::on(Bug::OldCompletionsTaken) {
            return;
        }
        // The completion may be of a batch that was cut since; the epoch tells.
        if index > self.durable_index && self.log.epoch_at(index) == Some(epoch) {
            self.durable_index = index;
        }
    }

    fn cut_persisted(&mut self, number: u64, out: &mut Vec<Command>) {
        let Some((pending, index)) = self.pending_cut else {
            return;
        };
        if number != pending {
            return;
        }
        self.pending_cut = None;
        self.durable_index = self.durable_index.max(index);
        self.answer_parked(out);
    }

    fn drop_persisted(&mut self, out: &mut Vec<Command>) {
        self.pending_drop = false;
        self.answer_parked(out);
    }

    fn link_up(&mut self, now: Micros, server: ServerId, out: &mut Vec<Command>) {
        let Some(config) = &self.config else { return };
        if planted::on(Bug::NoNewAgreement) {
            return;
        }
        if config.head().is_some_and(|m| m.server_id == server) {
            self.told_head = None;
        }
        if self.predecessor == Some(server) {
            self.ask_predecessor(now, out);
        }
    }

    fn tick(&mut self, now: Micros, wall_us: u64, out: &mut Vec<Command>) {
        self.is_notice_due = true;
        self.ask_again(now, out);
        self.report_learner(out);
        self.report_progress(out);
        self.trim_by_retention(now, wall_us);
        self.expire_asked(now, out);
        self.mark_lag(now);
        self.judge_cut_off(now, out);
    }

    pub(crate) fn persist_base(&self, out: &mut Vec<Command>) {
        let base = self.log.base();
        out.push(Command::PersistBase {
            base: base.encode(),
            index: base.index,
            epoch: base.epoch,
        });
    }

    /// Appends to the log and, in a persistent group, to the journal.
    pub(crate) fn store(&mut self, batch: Batch, out: &mut Vec<Command>) {
        if self.durability == Durability::Persistent {
            out.push(Command::Persist(batch.clone()));
        }
        let before = self.log.weight(self.log.last_index());
        self.log.push(batch);
        // What is appended while a learner catches up does not come out of what it may be sent.
        self.allow_catchup(self.log.weight(self.log.last_index()) - before);
        if self.durability == Durability::InMemory || planted::on(Bug::DurableAheadOfSync) {
            self.durable_index = self.log.last_index();
        }
    }

    /// Cuts an uncommitted suffix. In a persistent group the cut itself must be on stable storage before this
    /// replica counts as settled: else a restart could bring back what a head has since told a client to be
    /// not in the log.
    pub(crate) fn cut_to(&mut self, index: Index, out: &mut Vec<Command>) {
        assert!(
            index >= self.commit_index,
            "cut to {index} below what is committed, {}",
            self.commit_index
        );
        if index >= self.log.last_index() {
            return;
        }
        self.log.truncate(index);
        self.durable_index = self.durable_index.min(index);
        if self.durability == Durability::Persistent && !planted::on(Bug::CutNotWritten) {
            self.cuts += 1;
            self.pending_cut = Some((self.cuts, index));
            out.push(Command::Cut {
                index,
                number: self.cuts,
            });
        }
    }

    /// Forgets the whole log, and begins behind `base`.
    pub(crate) fn replace_log(&mut self, base: Base, out: &mut Vec<Command>) {
        self.commit_index = base.index;
        self.log = Log::new(base);
        self.durable_index = self.log.last_index();
        self.trim.submit_again_behind(self.log.base().index);
        if self.durability == Durability::Persistent {
            self.durable_index = 0;
            self.trim.freed_unwritten_bytes = 0;
            // Whoever reads the journal must not take what it holds for what lies behind the base. Nor does what the
            // journal says before it has the cut tell of this log, be it of the very batch that comes again.
            self.cuts += 1;
            self.pending_cut = Some((self.cuts, 0));
            out.push(Command::Cut {
                index: 0,
                number: self.cuts,
            });
            self.persist_base(out);
        }
    }

    /// Whether the log agrees with the head's up to its end, for good.
    pub(crate) fn is_settled(&self) -> bool {
        let is_cut = self.pending_cut.is_none() || planted::on(Bug::CutNotWaitedFor);
        let is_dropped = !self.pending_drop || planted::on(Bug::DropNotWaitedFor);
        self.upstream.is_settled() && is_cut && is_dropped
    }

    pub(crate) fn advance_commit(&mut self, to: Index, out: &mut Vec<Command>) {
        let to = to.min(self.log.last_index());
        if to > self.commit_index {
            self.commit_index = to;
            out.push(Command::Committed);
        }
    }

    /// No longer the head: nobody here learns what becomes of what they wait for.
    fn abandon_waiters(&mut self, code: Code, out: &mut Vec<Command>) {
        self.abandon_rounds(code, out);
        self.abandon_trims(Code::EpochChanged, out);
        self.refuse_waiters(Code::EpochChanged, out);
    }

    /// Whether what they wait for comes about is not known.
    pub(crate) fn refuse_waiters(&mut self, code: Code, out: &mut Vec<Command>) {
        for waiter in self.waiters.drain(..) {
            out.push(Command::Refuse {
                client: waiter.client,
                seq: waiter.seq,
                entry_count: waiter.placed.entry_count,
                code,
                happened: Happened::Unknown,
                retry_after_ms: 0,
            });
        }
    }

    /// The group leaves this server: who waits for a commitment is told that it is not known here.
    pub fn leave(&mut self, out: &mut Vec<Command>) {
        self.abandon_waiters(Code::GroupNotHere, out);
    }

    /// What this replica has of the log, as it counts for commitment.
    pub(crate) fn own_level(&self) -> Index {
        assert!(
            self.durable_index <= self.log.last_index(),
            "a level is of what is held"
        );
        self.durable_index
    }

    /// At the head: what every replica has, and a learner about to join.
    pub(crate) fn ring_level(&self) -> Index {
        if planted::on(Bug::OwnDiskIgnored) && self.role == Role::Head {
            return self.ring.level();
        }
        self.level_here().min(self.ring.level())
    }

    /// The same of what clients trimmed.
    pub(crate) fn ring_trim_level(&self) -> Index {
        self.trim_level_here().min(self.ring.trim_level())
    }

    pub(crate) fn fault(&self) -> bool {
        self.fault_here || self.fault_before
    }

    pub fn is_head(&self) -> bool {
        matches!(self.role, Role::Head | Role::Sole)
    }

    /// Whether every replica of the chain is known to agree with this head's log in this epoch. Only then is
    /// what the session table does *not* hold known never to be ordered: answer a client's ATTACH (its
    /// `next_seq`) no earlier.
    pub fn ring_closed(&self) -> bool {
        if planted::on(Bug::AttachedBeforeRing) {
            return self.is_head();
        }
        self.is_head() && self.ring.is_closed() && self.is_settled()
    }

    pub fn epoch(&self) -> Epoch {
        self.config.as_ref().map_or(0, |c| c.epoch)
    }

    pub fn config(&self) -> Option<&GroupConfig> {
        self.config.as_ref()
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn durability(&self) -> Durability {
        self.durability
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn state(&self) -> GroupState {
        let Some(config) = &self.config else {
            return GroupState::Syncing;
        };
        if !self.is_settled() {
            GroupState::Syncing
        } else if self.fault() || self.ring.fault() {
            GroupState::ReadOnly
        } else {
            config.state()
        }
    }

    pub fn commit_index(&self) -> Index {
        self.commit_index
    }

    pub fn commit_offset(&self) -> Offset {
        self.log.end_offset(self.commit_index)
    }

    /// All committed entries ever, those of a lost log before this one included: the group's usage.
    pub fn committed_entries(&self) -> u64 {
        let beginning = self.config.as_ref().and_then(|c| c.beginning);
        match beginning {
            Some(b) => b.entries_before + self.commit_offset().saturating_sub(b.offset),
            None => self.commit_offset(),
        }
    }

    /// Bytes of all committed entries ever.
    pub fn committed_bytes(&self) -> u64 {
        self.log.cumulative_bytes_at(self.commit_index)
    }

    /// Up to here the log is on stable storage; 0 while that is not known of a log that replaced another.
    pub fn durable_index(&self) -> Index {
        self.durable_index
    }

    pub fn durable_offset(&self) -> Offset {
        self.log.end_offset(self.durable_index)
    }

    pub fn trim_offset(&self) -> Offset {
        self.log.end_offset(self.trim_index())
    }

    /// Batches up to this are not served to readers any more, once they are known to be committed here.
    pub fn trimmed_through(&self) -> Index {
        self.trim.target.max(self.log.base().index)
    }

    /// Payload bytes ordered here and not yet committed.
    pub fn uncommitted_bytes(&self) -> u64 {
        if self.commit_index == self.log.last_index() {
            return 0;
        }
        self.log.weight(self.log.last_index()) - self.log.weight(self.commit_index)
    }

    pub fn payload(&self, index: Index) -> Option<&Bytes> {
        self.log.get(index).and_then(|b| b.payload.as_ref())
    }
}
